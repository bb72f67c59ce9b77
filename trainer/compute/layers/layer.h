#pragma once

#include <span>
#include <string>
#include <vector>

#include "trainer/compute/models/model_spec.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// What a layer is before any backend: its output's shape and its parameters. One file a kind; each
// throws Invalid, naming the layer, where its inputs or its settings do not fit.

struct LayerInput {
  std::string name;  // as the layer refers to it
  std::vector<int64_t> shape;
};

struct LayerShape {
  std::vector<int64_t> output;
  std::vector<ParameterTensor> parameters;
};

LayerShape describe(const Dense&, const LayerSpec& layer, std::span<const LayerInput> inputs);
LayerShape describe(const ActivationLayer&, const LayerSpec& layer,
                    std::span<const LayerInput> inputs);
LayerShape describe(const Dropout&, const LayerSpec& layer, std::span<const LayerInput> inputs);
LayerShape describe(const BatchNormalization&, const LayerSpec& layer,
                    std::span<const LayerInput> inputs);
LayerShape describe(const Add&, const LayerSpec& layer, std::span<const LayerInput> inputs);
LayerShape describe(const Concatenate&, const LayerSpec& layer, std::span<const LayerInput> inputs);

LayerShape describe_layer(const LayerSpec& layer, std::span<const LayerInput> inputs);

// Shared by the above.
int64_t element_count(const std::string& layer, const std::vector<int64_t>& shape);
std::string to_string(const std::vector<int64_t>& shape);
const LayerInput& only_input(const LayerSpec& layer, std::span<const LayerInput> inputs);

}  // namespace muster::compute
