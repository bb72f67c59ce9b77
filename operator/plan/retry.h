#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::plan {

// Returns the status with which a failed job continues because a user asked for it. This is the
// only way out of FailureTarget; no plan does it by itself. Replicas begin a new run. The numbers
// of attempts and of each replica's restarts continue; backoffLimit and activeDeadlineSeconds begin
// anew. A replica of a user's image that has succeeded stays done; with `training` all replicas are
// needed again. Precondition: status.is_true("FailureTarget").
api::JobStatus retry(const api::TrainingJob& job);

// Whether the job has succeeded and its spec has been given more epochs or steps since.
bool asks_for_more(const api::TrainingJob& job);

// Whether the job has finished and has been given nothing more to train since.
bool stays_finished(const api::TrainingJob& job);

// Returns "4 epochs" or "1 step".
std::string describe(const api::TrainingLength& length);

// Returns the status with which a job that has succeeded trains on because a user asked for it. All
// replicas begin a new run, and their numbers continue as in retry(). Preconditions:
// status.is_true("Succeeded"), and the job has `training`.
api::JobStatus train_on(const api::TrainingJob& job);

}  // namespace muster::plan
