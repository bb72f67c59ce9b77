#pragma once

#include <cstdint>
#include <span>

#include "trainer/compute/parameter_layout.h"

namespace muster::compute {

// Fills `parameters` (layout.size() floats) as the initializers say: a function of (seed, tensor
// name, element) only.
void initialize_parameters(const ParameterLayout& layout, uint64_t seed,
                           std::span<float> parameters);

}  // namespace muster::compute
