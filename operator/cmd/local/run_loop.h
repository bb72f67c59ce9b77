#pragma once

#include "common/system/descriptor.h"
#include "operator/cmd/job/job_source.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Runs the job's replicas until the job has finished or is suspended, or the run gives up. Shows
// what happens, and the summary. `signals` are those that ask the job to end. Returns the exit code
// of the process. Precondition: the job's directory is locked.
int run_to_the_end(JobSource source, local::JobState state, const RunOptions& options,
                   Descriptor signals);

}  // namespace muster::cmd
