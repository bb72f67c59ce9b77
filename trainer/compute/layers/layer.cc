#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe_layer(const LayerSpec& layer, std::span<const LayerInput> inputs) {
  return std::visit([&](const auto& kind) { return describe(kind, layer, inputs); }, layer.kind);
}

std::string to_string(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::vector<int64_t> as_features(const std::vector<int64_t>& shape) {
  if (shape.size() >= 3) return shape;
  int64_t count = 1;
  for (const int64_t axis : shape) count *= axis;
  return {count};
}

std::optional<int64_t> element_count(const std::vector<int64_t>& shape) {
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t count = 1;
  for (const int64_t axis : shape) {
    if (axis < 1 || axis > kMost / count) return std::nullopt;
    count *= axis;
  }
  return count;
}

std::optional<Mismatch> require_one(std::span<const LayerInput> inputs) {
  if (inputs.size() == 1) return std::nullopt;
  return Mismatch{-1, "inputs", "one input", std::to_string(inputs.size())};
}

std::optional<Mismatch> require_several(std::span<const LayerInput> inputs) {
  if (inputs.size() >= 2) return std::nullopt;
  return Mismatch{-1, "inputs", "two inputs or more", std::to_string(inputs.size())};
}

std::vector<ParameterTensor> kernel_and_bias(const LayerSpec& layer, std::vector<int64_t> kernel,
                                             const Initializer& initializer,
                                             std::optional<int64_t> bias,
                                             const Initializer& bias_initializer) {
  const Segment segment = layer.trainable ? Segment::trainable : Segment::frozen;
  std::vector<ParameterTensor> tensors(1);
  tensors[0].name = layer.name + "/kernel";
  tensors[0].shape = std::move(kernel);
  tensors[0].segment = segment;
  tensors[0].initializer = initializer;
  if (!bias) return tensors;
  ParameterTensor& last = tensors.emplace_back();
  last.name = layer.name + "/bias";
  last.shape = {*bias};
  last.segment = segment;
  last.initializer = bias_initializer;
  last.weight_decay_multiplier = 0.0f;
  return tensors;
}

}  // namespace muster::compute
