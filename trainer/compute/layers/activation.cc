#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe(const ActivationLayer&, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto misfit = require_one(inputs)) return *misfit;
  return LayerShape{inputs[0].shape, {}};
}

}  // namespace muster::compute
