#pragma once

#include <string>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Checks, for a job that would begin at step 0 and before anything is started, that the file which
// its initializeFrom names is there, whole, and fits the model. Throws Invalid naming field, line
// and file. Returns a sentence on the parts of the model that are not in it, or "". Takes as long
// as reading the file. Checks nothing if no muster-trainer here reads the file: what a user's own
// command does is not known.
std::string check_initial_weights(const JobSource& source);

}  // namespace muster::cmd
