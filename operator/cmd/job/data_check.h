#pragma once

#include <cstdio>

#include "operator/cmd/job/job_source.h"

namespace muster::cmd {

// Checks, before anything is started, that the data files of muster-trainer's replicas on this
// machine can be read, from the folder in which each replica runs. Throws Invalid with a line for
// each file that does not exist or cannot be opened. Evaluation data are also read to their ends,
// because damaged evaluation data do not make the job fail later. Training data are not: the
// replicas that train read them before the first step, and end the job if they are damaged. A line
// on `out` announces the reading, because it takes time. Files for a user's own command are not
// checked, because the command may create them.
void require_data(const JobSource& source, FILE* out);

}  // namespace muster::cmd
