#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe(const ActivationLayer&, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  return LayerShape{inputs[0].shape, {}};
}

}  // namespace muster::compute
