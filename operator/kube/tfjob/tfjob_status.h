#pragma once

#include <string>
#include <vector>

#include "common/document.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the status of a TFJob as kubeflow.org/v1 has it: conditions, replicaStatuses, startTime
// and completionTime of its companion `job` with this status. The condition that became true last
// stands last: `kubectl get tfjobs` shows that one.
Json tfjob_status(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status);

// Returns the status of a TFJob that cannot be run: Failed, because of `why`.
Json refused_tfjob_status(const Json& tfjob, const std::string& why, api::Time now);

// Returns the condition of this type, or null.
const Json& tfjob_condition(const Json& status, const std::string& type);
// Whether the TFJob has a refused_tfjob_status().
bool is_refused_tfjob(const Json& status);
// Whether the TFJob has Succeeded or Failed.
bool is_tfjob_finished(const Json& status);
// Returns the conditions that are true in `after` and were not in `before`.
std::vector<Json> tfjob_news(const Json& before, const Json& after);

}  // namespace muster::kube
