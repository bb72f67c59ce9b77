#pragma once

#include <span>

#include "trainer/checkpoint/store/store.h"
#include "trainer/compute/optimizer.h"
#include "trainer/spec/training_spec.h"

namespace muster::checkpoint {

// Fills the state with which a training continues from `from`, or begins if `from` is null, for
// `range` of the optimizer's layout: range.size() floats of the parameters, and as many of each
// slot. Throws the errors of load() and fill_initial_parameters().
void begin_state(const Store::Found* from, const spec::TrainingSpec& spec,
                 const compute::Optimizer& optimizer, compute::Range range,
                 std::span<float> parameters, std::span<const std::span<float>> slots);

}  // namespace muster::checkpoint
