#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the status of a TFJob in the form of kubeflow.org/v1: conditions, replicaStatuses,
// startTime and completionTime of its companion `job` with this status. The condition that became
// true last is at the end of the list, because `kubectl get tfjobs` shows the last one. The end of
// the job is reported when it is decided, while replicas still leave. A status that says Succeeded
// does not change any more.
Json tfjob_status(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status,
                  api::Time now);

// Returns the status of a TFJob that cannot run with its present spec: Failed, because of `why`.
Json refused_tfjob_status(const Json& tfjob, const std::string& why, api::Time now);

// Returns the condition of this type, or null.
const Json& tfjob_condition(const Json& status, std::string_view type);
// Whether the TFJob has Succeeded or Failed.
bool is_tfjob_finished(const Json& status);
// Whether the TFJob was refused and its spec has not changed since.
bool is_refused_tfjob(const Json& tfjob);
// Whether the TFJob has finished and will not run again. A refused TFJob may run when its spec has
// changed.
bool is_tfjob_over(const Json& tfjob);
// Returns the conditions that are true in `after` and were not true in `before`, and the condition
// of a job that was resumed.
std::vector<Json> tfjob_news(const Json& before, const Json& after);

}  // namespace muster::kube
