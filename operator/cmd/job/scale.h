#pragma once

#include "operator/api/training_job.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Throws Invalid, saying what was expected, for a job that cannot be scaled to so many workers: one
// without workers, one with spec.training that is neither elastic nor suspended, one whose end is
// decided, or a number out of its limits.
void require_scalable(const api::TrainingJob& job, int workers);
// Checks the same for a job in a directory, whose manifest must also be valid with so many workers:
// no API server checks that.
void require_scalable_here(const local::JobDirectory& directory, const api::TrainingJob& job,
                           int workers);

// Precondition: the job has workers.
int workers_of(const api::TrainingJob& job);
// "3 workers".
std::string workers_text(int workers);
// "scaled to 3 workers", and what that means for the replicas of a job that runs. `job` is as it
// was before.
std::string scaled_text(const api::TrainingJob& job, int workers);

}  // namespace muster::cmd
