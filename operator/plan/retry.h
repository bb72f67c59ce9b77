#pragma once

#include "operator/api/training_job.h"

namespace muster::plan {

// The status with which a failed job goes on, because a user asked for that: the one way out of
// FailureTarget, which no plan takes by itself. Replicas begin a new run; attempts and each
// replica's restarts count on, while backoffLimit and activeDeadlineSeconds begin anew. A replica
// of an image of the user's that has succeeded stays done; with `training` everybody is needed
// again. Precondition: status.is_true("FailureTarget").
api::JobStatus retry(const api::TrainingJob& job);

}  // namespace muster::plan
