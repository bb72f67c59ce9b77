#include "trainer/compute/step_memory.h"

#include <algorithm>
#include <vector>

#include "trainer/compute/fusion.h"

namespace muster::compute {
namespace {

constexpr int64_t kFloat = 4, kHalf = 2;

// Returns, for each value, the bytes of one number; 0 if the value is not kept.
std::vector<int64_t> bytes_of_values(const Graph& graph, Precision precision) {
  std::vector<int64_t> bytes(graph.values.size());
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = graph.values[i].memory == static_cast<int>(i) ? kFloat : 0;
  for (const Fusion& fusion : find_fusions(graph)) {
    bytes[static_cast<size_t>(fusion.convolution->output)] = 0;
    bytes[static_cast<size_t>(fusion.normalization->output)] = 0;
    bytes[static_cast<size_t>(fusion.last().output)] =
        precision == Precision::bfloat16 ? kHalf : kFloat;
  }
  return bytes;
}

// The largest sum of the gradients that are in use while one node's gradients are computed: a
// gradient is in use from the last node that reads its value to the one that wrote it.
int64_t most_gradients(const Graph& graph, const std::vector<int64_t>& bytes) {
  const auto count = static_cast<int>(graph.nodes.size());
  std::vector<int> written(graph.values.size(), 0), read(graph.values.size(), 0);
  const auto memory_of = [&](int value) {
    return static_cast<size_t>(graph.values[static_cast<size_t>(value)].memory);
  };
  for (int i = 0; i < count; ++i) {
    const Node& node = graph.nodes[static_cast<size_t>(i)];
    if (graph.values[static_cast<size_t>(node.output)].memory == node.output)
      written[static_cast<size_t>(node.output)] = i;
    for (const int input : node.inputs) read[memory_of(input)] = i;
  }
  read[memory_of(graph.output)] = count;
  int64_t most = 0;
  for (int at = 0; at <= count; ++at) {
    int64_t sum = 0;
    for (size_t i = 0; i < bytes.size(); ++i)
      if (graph.values[i].needs_gradient && written[i] <= at && at <= read[i])
        sum += bytes[i] * graph.values[i].width;
    most = std::max(most, sum);
  }
  return most;
}

// Threads add up the gradients of convolutions' kernels apart.
int64_t floats_of_each_thread(const Graph& graph) {
  int64_t floats = 0;
  for (const Node& node : graph.nodes) {
    const bool convolution = std::holds_alternative<Conv2d>(node.kind) ||
                             std::holds_alternative<DepthwiseConv2d>(node.kind);
    if (!convolution || !node.trainable) continue;
    for (const std::string& name : node.parameters)
      floats += static_cast<int64_t>(graph.layout.find(name).count);
  }
  return floats;
}

}  // namespace

int64_t step_memory(const Graph& graph, int64_t rows, const OptimizerSpec& optimizer,
                    Precision precision, int threads) {
  const std::vector<int64_t> bytes = bytes_of_values(graph, precision);
  int64_t of_row = most_gradients(graph, bytes);
  for (size_t i = 0; i < bytes.size(); ++i) of_row += bytes[i] * graph.values[i].width;
  const auto buffers = static_cast<int64_t>(2 + slot_names_of(optimizer).size());
  return rows * of_row + kFloat * (buffers * static_cast<int64_t>(graph.layout.size()) +
                                   threads * floats_of_each_thread(graph));
}

}  // namespace muster::compute
