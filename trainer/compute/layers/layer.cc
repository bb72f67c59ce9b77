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

}  // namespace muster::compute
