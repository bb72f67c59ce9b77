#include "trainer/compute/layers/layer.h"

#include "common/error.h"

namespace muster::compute {

LayerShape describe_layer(const LayerSpec& layer, std::span<const LayerInput> inputs) {
  return std::visit([&](const auto& kind) { return describe(kind, layer, inputs); }, layer.kind);
}

std::string to_string(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

int64_t element_count(const std::string& layer, const std::vector<int64_t>& shape) {
  // Far above what fits in memory, far below what overflows once multiplied by rows and bytes.
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t count = 1;
  for (int64_t axis : shape) {
    if (axis < 1 || axis > kMost || (count *= axis) > kMost) {
      throw Invalid("layer \"" + layer +
                    "\": expected axes of at least 1 and at most 2^32 elements, found " +
                    to_string(shape));
    }
  }
  return count;
}

const LayerInput& only_input(const LayerSpec& layer, std::span<const LayerInput> inputs) {
  if (inputs.size() == 1) return inputs[0];
  throw Invalid("layer \"" + layer.name + "\": expected one input, found " +
                std::to_string(inputs.size()));
}

}  // namespace muster::compute
