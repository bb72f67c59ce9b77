#pragma once

#include <vector>

#include "common/text/pattern.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

struct SsdOptions {
  int64_t classes = 90;                    // number of classes without the background
  float depth_multiplier = 1.0f;           // multiplies all numbers of filters; the minimum is 16
  float normalization_momentum = 0.9997f;  // momentum of the moving statistics
  detection::ClassificationLoss classification = {};
};

// Returns the TF Object Detection API's ssd_mobilenet_v1 for images of 300 x 300 x 3; any other
// size works too. Its feature maps are Conv2d_11_pointwise and Conv2d_13_pointwise of MobileNet v1,
// and four more; each of these is a 1x1 and a 3x3 convolution of stride 2 after the previous map.
// The numbers are from ssd_mobilenet_v1_coco.config.
ModelSpec ssd_mobilenet(const SsdOptions& options);

// The names of the convolutions after the backbone end in their number of filters: in the TF Object
// Detection API after the depth multiplier, here before it. Returns the renaming steps from the
// API's names to ours.
std::vector<Rename> names_of_any_depth();

// Returns the anchors of a detector, boxes [n, 4]. Throws Invalid if the detector's output does not
// have a code and logits for each anchor.
std::vector<float> anchors_of(const SsdLoss& loss, const Graph& graph);

}  // namespace muster::compute
