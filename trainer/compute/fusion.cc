#include "trainer/compute/fusion.h"

#include <algorithm>
#include <limits>

#include "common/error.h"
#include "common/exit_code.h"

namespace muster::compute {
namespace {

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), readers_(graph.values.size()) {
    for (const Node& node : graph.nodes)
      for (const int input : node.inputs) readers_[static_cast<size_t>(input)].push_back(&node);
  }

  std::vector<Fusion> find() const {
    std::vector<Fusion> found;
    for (const Node& node : graph_.nodes) {
      if (!is_plain_convolution(node)) continue;
      Fusion fusion{&node, only_reader(node.output), nullptr};
      if (fusion.normalization == nullptr ||
          !std::holds_alternative<BatchNormalization>(fusion.normalization->kind))
        continue;
      const Node* next = only_reader(fusion.normalization->output);
      if (next != nullptr && is_rectifier(*next)) fusion.activation = next;
      if (only_convolutions_read(fusion.last().output)) found.push_back(fusion);
    }
    return found;
  }

 private:
  static bool is_plain_convolution(const Node& node) {
    const auto plain = [](const auto& layer) {
      return !layer.use_bias && layer.activation == Activation::linear;
    };
    if (const auto* layer = std::get_if<Conv2d>(&node.kind)) return plain(*layer);
    if (const auto* layer = std::get_if<DepthwiseConv2d>(&node.kind)) return plain(*layer);
    return false;
  }

  static bool is_rectifier(const Node& node) {
    const auto* layer = std::get_if<ActivationLayer>(&node.kind);
    return layer != nullptr &&
           (layer->activation == Activation::relu || layer->activation == Activation::relu6);
  }

  // Returns the node that reads a value, if it is the only one.
  const Node* only_reader(int value) const {
    const auto& readers = readers_[static_cast<size_t>(value)];
    return readers.size() == 1 && value != graph_.output ? readers[0] : nullptr;
  }

  bool only_convolutions_read(int value) const {
    const auto& readers = readers_[static_cast<size_t>(value)];
    return value != graph_.output && !readers.empty() &&
           std::ranges::all_of(readers, [](const Node* node) {
             return std::holds_alternative<Conv2d>(node->kind) ||
                    std::holds_alternative<DepthwiseConv2d>(node->kind);
           });
  }

  const Graph& graph_;
  std::vector<std::vector<const Node*>> readers_;  // the index is a value
};

}  // namespace

std::vector<Fusion> find_fusions(const Graph& graph) {
  return Finder(graph).find();
}

float Fusion::low() const {
  return activation == nullptr ? -std::numeric_limits<float>::infinity() : 0.0f;
}

float Fusion::high() const {
  const auto* layer = activation ? &std::get<ActivationLayer>(activation->kind) : nullptr;
  return layer != nullptr && layer->activation == Activation::relu6
             ? 6.0f
             : std::numeric_limits<float>::infinity();
}

const Node* operation_at(std::span<const Fusion> fusions, const Node& node) {
  for (const Fusion& fusion : fusions)
    if (fusion.has(node)) return &node == &fusion.last() ? fusion.convolution : nullptr;
  return &node;
}

bool is_inside(std::span<const Fusion> fusions, int value) {
  return std::ranges::any_of(fusions, [&](const Fusion& fusion) {
    return value == fusion.convolution->output ||
           (value == fusion.normalization->output && value != fusion.last().output);
  });
}

bool is_end(std::span<const Fusion> fusions, int value) {
  return std::ranges::any_of(fusions,
                             [&](const Fusion& fusion) { return value == fusion.last().output; });
}

int output_of(std::span<const Fusion> fusions, const Node& convolution) {
  for (const Fusion& fusion : fusions)
    if (fusion.convolution == &convolution) return fusion.last().output;
  return convolution.output;
}

void check_precision(Precision precision, const std::vector<Fusion>& fusions) {
  if (precision == Precision::bfloat16 && fusions.empty())
    throw Invalid(
        "precision: expected float32 for a model without convolutions whose outputs are batch "
        "normalized and read by convolutions: only these values are kept as bfloat16",
        kBadConfig);
}

}  // namespace muster::compute
