#include "trainer/compute/layers/layer.h"

namespace muster::compute {

// A sample of any shape is taken as one vector, in C order.
Described describe(const Dense& dense, const LayerSpec& layer, std::span<const LayerInput> inputs) {
  if (auto mismatch = require_one(inputs)) return *mismatch;
  if (dense.units < 1) return Mismatch{-1, "units", "at least 1 unit", std::to_string(dense.units)};
  const Segment segment = layer.trainable ? Segment::trainable : Segment::frozen;
  ParameterTensor kernel;
  kernel.name = layer.name + "/kernel";
  kernel.shape = {*element_count(inputs[0].shape), dense.units};
  if (!element_count(kernel.shape)) {
    return Mismatch{-1, "units", "at most 2^32 weights", "a kernel of " + to_string(kernel.shape)};
  }
  kernel.segment = segment;
  kernel.initializer = dense.kernel_initializer;
  LayerShape shape{{dense.units}, {kernel}};
  if (dense.use_bias) {
    ParameterTensor bias;
    bias.name = layer.name + "/bias";
    bias.shape = {dense.units};
    bias.segment = segment;
    bias.initializer = dense.bias_initializer;
    bias.weight_decay_multiplier = 0.0f;
    shape.parameters.push_back(bias);
  }
  shape.multiplications = static_cast<double>(kernel.shape[0]) * static_cast<double>(dense.units);
  return shape;
}

}  // namespace muster::compute
