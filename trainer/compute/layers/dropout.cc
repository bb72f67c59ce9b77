#include "trainer/compute/layers/layer.h"

namespace muster::compute {

Described describe(const Dropout& dropout, const LayerSpec&, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  if (!(dropout.rate >= 0.0f && dropout.rate < 1.0f)) {
    return Mismatch{-1, "rate", "a rate in [0, 1)", std::to_string(dropout.rate)};
  }
  return LayerShape{inputs[0].shape, {}};
}

}  // namespace muster::compute
