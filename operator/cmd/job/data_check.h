#pragma once

#include <cstdio>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Before anything is started: whether the data that muster-trainer's replicas will read on this
// machine can be read, each from the folder its replica runs in. Throws Invalid with a line for
// each file that is not there or cannot be opened. Evaluation data are also read to their ends,
// for an evaluator that finds them damaged fails no job; of training data that is left to those who
// train, who read all before the first step and end the job. As reading takes its time, `out` is
// told of it in a line before. What a command of the user's own
// reads is not asked: it may still make it.
void require_data(const JobSource& source, FILE* out);

}  // namespace muster::cmd
