#pragma once

#include <string>
#include <vector>

#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

struct MobileNetOptions {
  float depth_multiplier = 1.0f;           // multiplies all numbers of filters
  int64_t least_filters = 8;               // the minimum after the multiplication
  float normalization_momentum = 0.9997f;  // momentum of the moving statistics
};

// Returns MobileNet v1 for images of 224 x 224 x 3; any other size works too.
ModelSpec mobilenet(const MobileNetOptions& options, int64_t classes);

// Returns the layers of MobileNet v1 without its head: convolutions named as in TF-Slim, each
// followed by its normalization and its ReLU6. The last layer is "Conv2d_13_pointwise_relu6".
std::vector<LayerSpec> mobilenet_backbone(const MobileNetOptions& options);

// The two building blocks of the layers: a convolution without activation and bias, with `filters`
// multiplied as the options say; and a layer with the normalization and ReLU6 that follow it.
Conv2d normalized_convolution(const MobileNetOptions& options, int64_t filters,
                              const Window& window, const Initializer& initializer);
void add_normalized(std::vector<LayerSpec>& layers, const MobileNetOptions& options,
                    const std::string& name, const LayerKind& convolution);

}  // namespace muster::compute
