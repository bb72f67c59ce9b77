#include "trainer/compute/layers/layer.h"

namespace muster::compute {

LayerShape describe(const ActivationLayer&, const LayerSpec& layer,
                    std::span<const LayerInput> inputs) {
  return {only_input(layer, inputs).shape, {}};
}

}  // namespace muster::compute
