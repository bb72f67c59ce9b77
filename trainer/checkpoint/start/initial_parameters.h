#pragma once

#include <span>

#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::checkpoint {

// Writes the parameters that a job starts with: the initializers', then those of
// training.initializeFrom, if any (throws as take_weights does). Fills layout.size()
// floats, which depend on the spec and that file only. The log says which tensors were taken, as a
// warning if more have another shape.
void fill_initial_parameters(const spec::TrainingSpec& spec, const compute::ParameterLayout& layout,
                             std::span<float> parameters);

}  // namespace muster::checkpoint
