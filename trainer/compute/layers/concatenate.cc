#include <algorithm>

#include "common/error.h"
#include "trainer/compute/layers/layer.h"

namespace muster::compute {

LayerShape describe(const Concatenate&, const LayerSpec& layer,
                    std::span<const LayerInput> inputs) {
  if (inputs.size() < 2) {
    throw Invalid("layer \"" + layer.name + "\": expected two inputs or more, found " +
                  std::to_string(inputs.size()));
  }
  std::vector<int64_t> shape = inputs[0].shape;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const std::vector<int64_t>& other = inputs[i].shape;
    if (shape.empty() || other.size() != shape.size() ||
        !std::equal(shape.begin(), shape.end() - 1, other.begin())) {
      throw Invalid("layer \"" + layer.name +
                    "\": its inputs may differ in their last axis only: \"" + inputs[0].name +
                    "\" is " + to_string(inputs[0].shape) + ", \"" + inputs[i].name + "\" is " +
                    to_string(other));
    }
    shape.back() += other.back();
  }
  return {shape, {}};
}

}  // namespace muster::compute
