#pragma once

#include <cstdio>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Checks, before anything is started, that the data which muster-trainer's replicas will read on
// this machine can be read, each from the folder in which its replica runs. Throws Invalid with a
// line for each file that is not there or cannot be opened. Evaluation data are also read to their
// ends, because an evaluator that finds them damaged fails no job; damage in training data is left
// to the replicas that train, which read all before the first step and end the job. As reading
// takes its time, a line on `out` announces it. Files that a command of the user's own reads are
// not checked: the command may still make them.
void require_data(const JobSource& source, FILE* out);

}  // namespace muster::cmd
