#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe(const Add&, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_several(inputs)) return *mismatch;
  for (const LayerInput& input : inputs) {
    if (as_features(input.shape) == as_features(inputs[0].shape)) continue;
    return Mismatch{-1, "inputs", "inputs of one shape",
                    inputs[0].name + " of " + to_string(inputs[0].shape) + " and " + input.name +
                        " of " + to_string(input.shape)};
  }
  return LayerShape{as_features(inputs[0].shape), {}};
}

}  // namespace muster::compute
