#include <algorithm>

#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe(const Concatenate&, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_several(inputs)) return *mismatch;
  std::vector<int64_t> shape = as_features(inputs[0].shape);
  for (size_t i = 1; i < inputs.size(); ++i) {
    const std::vector<int64_t> other = as_features(inputs[i].shape);
    if (other.size() != shape.size() ||
        !std::equal(shape.begin(), shape.end() - 1, other.begin())) {
      return Mismatch{-1, "inputs", "inputs that differ in their last axis only",
                      inputs[0].name + " of " + to_string(inputs[0].shape) + " and " +
                          inputs[i].name + " of " + to_string(inputs[i].shape)};
    }
    shape.back() += other.back();
  }
  if (!element_count(shape)) return Mismatch{-1, "inputs", kCountable, to_string(shape)};
  return LayerShape{shape, {}};
}

}  // namespace muster::compute
