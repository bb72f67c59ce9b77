#pragma once

#include <span>

#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::checkpoint {

// Writes the first parameters of a job: the values of the initializers, then those of
// training.initializeFrom, if given (throws the errors of take_weights). Fills layout.size()
// floats, which depend only on the spec and that file. Logs which tensors were taken, as a warning
// if other tensors have another shape.
void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters);

}  // namespace muster::checkpoint
