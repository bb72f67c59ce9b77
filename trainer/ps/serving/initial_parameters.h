#pragma once

#include <span>

#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::ps {

// What a job starts from: the initializers, then training.initializeFrom where there is one
// (checkpoint::take_weights, which says what it throws). Fills layout.size() floats: a function of
// the spec and that file only.
void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters);

}  // namespace muster::ps
