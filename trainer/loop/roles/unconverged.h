#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Returns a sentence for each kind of moving average that is used in evaluations and that still
// consists mostly of its first value after `steps` steps. The kinds are the statistics of batch
// normalization, unless initializeFrom set them, and the average of the weights.
std::vector<std::string> unconverged_averages(const spec::TrainingSpec& spec,
                                              const compute::ParameterLayout& layout,
                                              uint64_t steps);
// Logs the sentences of unconverged_averages() as warnings.
void warn_of_unconverged_averages(const spec::TrainingSpec& spec,
                                  const compute::ParameterLayout& layout, uint64_t steps);

}  // namespace muster::loop
