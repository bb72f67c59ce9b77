#include <algorithm>
#include <variant>

#include "trainer/compute/cpu/engine.h"

namespace muster::compute::cpu {

// A barrier costs about what 20,000 multiplications do, and a step has some ten of them.
int worthwhile_threads(const Graph& graph, int64_t rows, int cpus) {
  constexpr double kWorthOneThread = 1e6;
  double multiplications = 0;
  for (const Node& node : graph.nodes) {
    if (!std::holds_alternative<Dense>(node.kind)) continue;
    multiplications += 3.0 * double(rows) * double(graph.values[size_t(node.inputs[0])].width) *
                       double(graph.values[size_t(node.output)].width);
  }
  const double worth = std::min(multiplications / kWorthOneThread, 1024.0);
  return std::clamp(static_cast<int>(worth), 1, std::max(1, cpus));
}

}  // namespace muster::compute::cpu
