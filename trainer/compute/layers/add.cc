#include "common/error.h"
#include "trainer/compute/layers/layer.h"

namespace muster::compute {

LayerShape describe(const Add&, const LayerSpec& layer, std::span<const LayerInput> inputs) {
  if (inputs.size() < 2) {
    throw Invalid("layer \"" + layer.name + "\": expected two inputs or more, found " +
                  std::to_string(inputs.size()));
  }
  for (const LayerInput& input : inputs) {
    if (input.shape == inputs[0].shape) continue;
    throw Invalid("layer \"" + layer.name + "\": its inputs differ in shape: \"" + inputs[0].name +
                  "\" is " + to_string(inputs[0].shape) + ", \"" + input.name + "\" is " +
                  to_string(input.shape));
  }
  return {inputs[0].shape, {}};
}

}  // namespace muster::compute
