#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// Returns which data of `training` lack an evaluation in a job that succeeded, and why: {"test":
// "..."}; null if none do. `evaluation` is the evaluation of the final checkpoint as the trainer
// wrote it.
Json not_evaluated(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                   const Json& evaluation);

// Returns the names of the job's validation and test data that the evaluation has read without
// coming to any metric, as for a detector whose data have no objects; null if there are none.
Json not_measured(const api::TrainingJob& job, const Json& evaluation);

}  // namespace muster::cmd
