#include "common/error.h"
#include "trainer/compute/layers/layer.h"

namespace muster::compute {

LayerShape describe(const Dropout& dropout, const LayerSpec& layer,
                    std::span<const LayerInput> inputs) {
  if (!(dropout.rate >= 0.0f && dropout.rate < 1.0f)) {
    throw Invalid("layer \"" + layer.name + "\": expected a dropout rate in [0, 1), found " +
                  std::to_string(dropout.rate));
  }
  return {only_input(layer, inputs).shape, {}};
}

}  // namespace muster::compute
