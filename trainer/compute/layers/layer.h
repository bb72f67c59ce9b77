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

// What a layer is before any backend: its output's shape and its parameters; or why its inputs or
// its settings do not fit, where Mismatch::layer is left to the caller. One file a kind.

struct LayerInput {
  std::string name;  // as the layer refers to it
  std::vector<int64_t> shape;
};

struct LayerShape {
  std::vector<int64_t> output;
  std::vector<ParameterTensor> parameters;
  double multiplications = 0;  // of one sample's way forward
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

Described describe_layer(const LayerSpec& layer, std::span<const LayerInput> inputs);

// Shared by the above.

// Product of the axes; nothing where one is below 1 or there are more than 2^32 elements: far above
// what fits in memory, far below what overflows once multiplied by rows and bytes.
std::optional<int64_t> element_count(const std::vector<int64_t>& shape);
inline constexpr const char* kCountable = "axes of at least 1, and at most 2^32 elements";
std::string to_string(const std::vector<int64_t>& shape);
// A sample as layers see it that tell features apart: with three axes and more (height, width,
// channels) as it is, so that its features are the last axis; else one vector, in C order.
std::vector<int64_t> as_features(const std::vector<int64_t>& shape);
// Of a layer that takes one input, or two and more.
std::optional<Mismatch> require_one(std::span<const LayerInput> inputs);
std::optional<Mismatch> require_several(std::span<const LayerInput> inputs);

}  // namespace muster::compute
