#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

// Models known by name, as `model: {name: mnist-mlp}` asks for. input_shape and label_count are
// what the model was made for; the data set at hand has the last word.
//
// mnist-mlp          784-256-256-10, ReLU, softmax cross entropy; Glorot uniform, biases zero
// mnist-sigmoid      784-100-10, sigmoid, softmax cross entropy; all weights from a unit normal,
//                    biases zero
// mnist-cnn          two 3x3 convolutions of 32 and 64 filters, ReLU, maximum of 2x2, dense 128,
//                    ReLU, dense 10, dropout 0.25 and 0.5 before the dense layers, softmax cross
//                    entropy; Glorot uniform, biases zero
// linear-regression  one dense unit, mean squared error; zeros
std::vector<std::string> model_names();

// Returns nothing if the catalogue does not have the name.
std::optional<ModelSpec> find_model(std::string_view name);

}  // namespace muster::compute
