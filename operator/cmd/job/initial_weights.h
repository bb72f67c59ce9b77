#pragma once

#include <string>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Of a job that would begin at step 0, before anything is started: whether what its initializeFrom
// names is there, whole, and fits the model. Throws Invalid naming field, line and file. Returns
// what of the model is not in it, as a sentence, or "". As long as reading the file takes. Asks
// nothing where nobody here reads it: what a command of the user's own does is not known.
std::string check_initial_weights(const JobSource& source);

}  // namespace muster::cmd
