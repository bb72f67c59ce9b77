#pragma once

#include <string>
#include <vector>

#include "common/documents/document.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the status of a TFJob as kubeflow.org/v1 has it: conditions, replicaStatuses, startTime
// and completionTime of its companion `job` with this status. The condition that became true last
// stands last: `kubectl get tfjobs` shows that one. The end is told when it is decided, while
// replicas still leave. A status that says Succeeded stays what it is.
Json tfjob_status(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status,
                  api::Time now);

// Returns the status of a TFJob that cannot be run as it is: Failed, because of `why`.
Json refused_tfjob_status(const Json& tfjob, const std::string& why, api::Time now);

// Returns the condition of this type, or null.
const Json& tfjob_condition(const Json& status, std::string_view type);
// Whether the TFJob has Succeeded or Failed.
bool is_tfjob_finished(const Json& status);
// Whether the TFJob has finished and nothing of it is to be run: one that was refused may run when
// its spec has changed.
bool is_tfjob_over(const Json& tfjob);
// Returns the conditions that are true in `after` and were not in `before`, and that of a job that
// was resumed.
std::vector<Json> tfjob_news(const Json& before, const Json& after);

}  // namespace muster::kube
