#pragma once

#include "operator/api/training_job.h"
#include "operator/local/job_directory.h"

namespace muster::cmd {

// Throws Invalid, saying what was expected, if a job cannot be scaled to this number of workers:
// the job has no workers, it has spec.training and is neither elastic nor suspended, its end is
// decided, or the number is out of the job's limits.
void require_scalable(const api::TrainingJob& job, int workers);
// Checks the same for a job in a directory. The manifest must also be valid with this number of
// workers, because no API server checks it.
void require_scalable_here(const local::JobDirectory& directory, const api::TrainingJob& job,
                           int workers);

// Precondition: the job has workers.
int workers_of(const api::TrainingJob& job);
// Returns a text such as "3 workers".
std::string workers_text(int workers);
// Returns "scaled to 3 workers", and what the change means for the replicas of a running job. `job`
// is the job before the change.
std::string scaled_text(const api::TrainingJob& job, int workers);

}  // namespace muster::cmd
