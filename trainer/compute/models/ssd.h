#pragma once

#include <vector>

#include "common/text/pattern.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

struct SsdOptions {
  int64_t classes = 90;                    // without the background
  float depth_multiplier = 1.0f;           // of all numbers of filters, which are 16 at least
  float normalization_momentum = 0.9997f;  // of batch normalization's moving statistics
  detection::ClassificationLoss classification = {};
};

// Returns the TF Object Detection API's ssd_mobilenet_v1 for images of 300 x 300 x 3; any other
// size works too. Its feature maps are Conv2d_11_pointwise and Conv2d_13_pointwise of MobileNet v1,
// and four more, each a 1x1 and a 3x3 convolution of stride 2 behind the one before. The numbers
// are those of ssd_mobilenet_v1_coco.config.
ModelSpec ssd_mobilenet(const SsdOptions& options);

// The names of the convolutions behind the backbone end in their number of filters, in the TF
// Object Detection API with the depth multiplier and here without. Returns the steps from the one
// to the other.
std::vector<Rename> names_of_any_depth();

// Returns the anchors of a detector, boxes [n, 4]. Throws Invalid if its output does not have a
// code and the logits of each.
std::vector<float> anchors_of(const SsdLoss& loss, const Graph& graph);

}  // namespace muster::compute
