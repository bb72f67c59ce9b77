#include "trainer/compute/cpu/worthwhile_threads.h"

#include <algorithm>

namespace muster::compute::cpu {

// A barrier costs about as much as 20,000 multiplications, and a step has about ten barriers.
int worthwhile_threads(const Graph& graph, int64_t rows, int cpus) {
  constexpr double kWorthOneThread = 1e6;
  double multiplications = 0;
  for (const Node& node : graph.nodes) multiplications += node.multiplications;
  // The backward pass costs twice as much as the forward pass.
  const double worth = std::min(3.0 * double(rows) * multiplications / kWorthOneThread, 1024.0);
  return std::clamp(static_cast<int>(worth), 1, std::max(1, cpus));
}

}  // namespace muster::compute::cpu
