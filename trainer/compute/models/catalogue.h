#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/text/pattern.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

// Models with a name, for `model: {name: mnist-mlp}`. input_shape and label_count are the values
// that the model was made for; the values of the data set override them.
//
// mnist-mlp          784-256-256-10, ReLU, softmax cross entropy; Glorot uniform, biases zero
// mnist-sigmoid      784-100-10, sigmoid, softmax cross entropy; all weights from a unit normal,
//                    biases zero
// mnist-cnn          two 3x3 convolutions of 32 and 64 filters, ReLU, maximum of 2x2, dense 128,
//                    ReLU, dense 10, dropout 0.25 and 0.5 before the dense layers, softmax cross
//                    entropy; Glorot uniform, biases zero
// mobilenet-v1       MobileNet v1 (Howard et al., 2017): a 3x3 convolution, 13 blocks of
//                    a depthwise and a 1x1 convolution, each followed by batch normalization and
//                    ReLU6, the mean over the image, dropout 0.001, dense; kernels from a
//                    truncated normal of 0.09, as in TF-Slim
// ssd-mobilenet-v1   the detector of the TF Object Detection API: see models/ssd.h
// linear-regression  one dense unit, mean squared error; zeros
std::vector<std::string> model_names();

// Settings of some models. A setting that is left out has the model's default.
struct ModelOptions {
  std::optional<int64_t> classes;                // mobilenet-v1: 1000; ssd-mobilenet-v1: 90
  std::optional<float> depth_multiplier;         // both models: 1
  std::optional<float> normalization_momentum;   // both models: 0.9997
  detection::ClassificationLoss classification;  // for ssd-mobilenet-v1
};

// Returns nothing if the catalogue does not have the name.
std::optional<ModelSpec> find_model(std::string_view name, const ModelOptions& options = {});

// Returns the renaming steps from the tensors of TensorFlow's published checkpoints to the tensors
// of a model of the catalogue. mobilenet-v1 and ssd-mobilenet-v1 have steps for TF-Slim's
// classifier (MobilenetV1/...) and for the detection zoo's ssd_mobilenet_v1
// (FeatureExtractor/MobilenetV1/...); other models have none.
std::vector<Rename> published_names(std::string_view model);

}  // namespace muster::compute
