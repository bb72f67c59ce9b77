#include "common/error.h"
#include "trainer/compute/layers/layer.h"

namespace muster::compute {

// A sample of any shape is taken as one vector, in C order.
LayerShape describe(const Dense& dense, const LayerSpec& layer,
                    std::span<const LayerInput> inputs) {
  const LayerInput& input = only_input(layer, inputs);
  if (dense.units < 1) {
    throw Invalid("layer \"" + layer.name + "\": expected at least 1 unit, found " +
                  std::to_string(dense.units));
  }
  const Segment segment = layer.trainable ? Segment::trainable : Segment::frozen;
  ParameterTensor kernel;
  kernel.name = layer.name + "/kernel";
  kernel.shape = {element_count(layer.name, input.shape), dense.units};
  kernel.segment = segment;
  kernel.initializer = dense.kernel_initializer;
  element_count(layer.name, kernel.shape);
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
  return shape;
}

}  // namespace muster::compute
