#pragma once

#include <span>
#include <string>

#include "trainer/checkpoint/store/store.h"
#include "trainer/compute/parameter_layout.h"

namespace muster::checkpoint {

// Fills `values` (the memory of `range` only) with "<prefix><tensor>" for every tensor of the
// layout in the range, from any number of shards; padding becomes zero. Throws Invalid, naming a
// tensor that is missing or has another shape; `values` is then unchanged.
void load(const Store::Found& found, const compute::ParameterLayout& layout, compute::Range range,
          std::span<float> values, const std::string& prefix);

// Fills `values`, layout.size() floats, with the weights to evaluate and export: the parameters; if
// the checkpoint has a moving average, the average replaces the trainable parameters. Throws the
// errors of load().
void load_weights(const Store::Found& found, const compute::ParameterLayout& layout,
                  std::span<float> values);

}  // namespace muster::checkpoint
