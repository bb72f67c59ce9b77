#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// Returns the data of the `training` on which a job that succeeded was not evaluated, and why:
// {"test": "..."}; null if nothing is missing. `evaluation` is the evaluation of the final
// checkpoint, as the trainer wrote it.
Json not_evaluated(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                   const Json& evaluation);

}  // namespace muster::cmd
