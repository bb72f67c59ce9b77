#include "trainer/compute/layers/layer.h"

namespace muster::compute {

// A sample of any shape is taken as one vector, in C order.
Described describe(const Dense& dense, const LayerSpec& layer, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  if (dense.units < 1) return Mismatch{-1, "units", "at least 1 unit", std::to_string(dense.units)};
  const std::vector<int64_t> kernel = {*element_count(inputs[0].shape), dense.units};
  if (!element_count(kernel)) {
    return Mismatch{-1, "units", "at most 2^32 weights", "a kernel of " + to_string(kernel)};
  }
  const auto bias = dense.use_bias ? std::optional(dense.units) : std::nullopt;
  LayerShape shape{
      {dense.units},
      kernel_and_bias(layer, kernel, dense.kernel_initializer, bias, dense.bias_initializer)};
  shape.parameters.front().regularized = true;
  shape.multiplications = static_cast<double>(kernel[0]) * static_cast<double>(dense.units);
  return shape;
}

}  // namespace muster::compute
