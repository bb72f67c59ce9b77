#pragma once

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "trainer/compute/mismatch.h"
#include "trainer/compute/models/model_spec.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// The description of a layer for every backend: the shape of its output and its parameters, or a
// Mismatch if its inputs or settings do not fit. The caller fills in Mismatch::layer. Each kind has
// one file.

struct LayerInput {
  std::string name;  // the name by which the layer refers to this input
  std::vector<int64_t> shape;
};

struct LayerShape {
  std::vector<int64_t> output;
  std::vector<ParameterTensor> parameters;
  double multiplications = 0;  // in the forward pass of one sample
};

using Described = std::variant<LayerShape, Mismatch>;

Described describe(const Dense&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const ActivationLayer&, const LayerSpec& layer,
                   std::span<const LayerInput> inputs);
Described describe(const Dropout&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const BatchNormalization&, const LayerSpec& layer,
                   std::span<const LayerInput> inputs);
Described describe(const Add&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const Concatenate&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const Conv2d&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const DepthwiseConv2d&, const LayerSpec& layer,
                   std::span<const LayerInput> inputs);
Described describe(const MaxPool&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const AveragePool&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const GlobalAveragePool&, const LayerSpec& layer,
                   std::span<const LayerInput> inputs);
Described describe(const Flatten&, const LayerSpec& layer, std::span<const LayerInput> inputs);
Described describe(const Reshape&, const LayerSpec& layer, std::span<const LayerInput> inputs);

Described describe_layer(const LayerSpec& layer, std::span<const LayerInput> inputs);

// Functions that several layers use.

// Returns the product of the axes; nothing if an axis is below 1 or there are more than 2^32
// elements. The limit is far larger than any memory, and so small that a multiplication by rows and
// bytes does not overflow.
std::optional<int64_t> element_count(const std::vector<int64_t>& shape);
inline constexpr const char* kCountable = "axes of at least 1, and at most 2^32 elements";
std::string to_string(const std::vector<int64_t>& shape);
// Returns the shape of a sample for layers that tell features apart. With three axes and more
// (height, width, channels) it is unchanged, so that the features are the last axis; else it is one
// vector, in C order.
std::vector<int64_t> as_features(const std::vector<int64_t>& shape);
// Return a mismatch if the layer has another number of inputs than required: one, or two and more.
std::optional<Mismatch> require_one(std::span<const LayerInput> inputs);
std::optional<Mismatch> require_several(std::span<const LayerInput> inputs);
// Returns a layer's kernel and, if it has one, its bias, named "<layer>/kernel" and "<layer>/bias".
std::vector<ParameterTensor> kernel_and_bias(const LayerSpec& layer, std::vector<int64_t> kernel,
                                             const Initializer& initializer,
                                             std::optional<int64_t> bias,
                                             const Initializer& bias_initializer);

}  // namespace muster::compute
