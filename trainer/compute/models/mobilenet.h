#pragma once

#include <string>
#include <vector>

#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

struct MobileNetOptions {
  float depth_multiplier = 1.0f;           // of all numbers of filters
  int64_t least_filters = 8;               // whatever the multiplier is
  float normalization_momentum = 0.9997f;  // of batch normalization's moving statistics
};

// Returns MobileNet v1 for images of 224 x 224 x 3; any other size works too.
ModelSpec mobilenet(const MobileNetOptions& options, int64_t classes);

// Returns the layers of MobileNet v1 without its head: convolutions named as in TF-Slim, and after
// each of them its normalization and its ReLU6. The last one is "Conv2d_13_pointwise_relu6".
std::vector<LayerSpec> mobilenet_backbone(const MobileNetOptions& options);

// The two pieces that the layers are made of: a convolution without activation and bias, with
// `filters` as the options change them; and a layer (its normalization behind it, and a ReLU6).
Conv2d normalized_convolution(const MobileNetOptions& options, int64_t filters,
                              const Window& window, const Initializer& initializer);
void add_normalized(std::vector<LayerSpec>& layers, const MobileNetOptions& options,
                    const std::string& name, const LayerKind& convolution);

}  // namespace muster::compute
