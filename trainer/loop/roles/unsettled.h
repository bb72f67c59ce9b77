#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/compute/parameter_layout.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Returns a sentence for each kind of moving average by which a model is judged and that is still
// mostly what it began with after so many steps: the statistics of batch normalization, unless they
// began with those of initializeFrom, and the average of the weights.
std::vector<std::string> unsettled_averages(const spec::TrainingSpec& spec,
                                            const compute::ParameterLayout& layout, uint64_t steps);
// Logs these sentences as warnings.
void warn_of_unsettled_averages(const spec::TrainingSpec& spec,
                                const compute::ParameterLayout& layout, uint64_t steps);

}  // namespace muster::loop
