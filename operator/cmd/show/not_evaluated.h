#pragma once

#include <vector>

#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// Which data of its `training` a job that succeeded was not evaluated on, and why: {"test": "..."};
// null where nothing is missing. `evaluation` is that of the final checkpoint, as the trainer wrote
// it.
Json not_evaluated(const api::TrainingJob& job, const std::vector<plan::ObservedReplica>& replicas,
                   const Json& evaluation);

}  // namespace muster::cmd
