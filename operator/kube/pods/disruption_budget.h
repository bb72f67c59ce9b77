#pragma once

#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the PodDisruptionBudget of a job with schedulingPolicy.maxUnavailable, or null.
//
// The budget states the number of replicas that must stay (minAvailable). With maxUnavailable,
// Kubernetes would ask the job's `scale` for the number of replicas, which counts only the workers.
// A replica that is not ready may always be evicted, so that it does not block the draining of a
// node.
Json disruption_budget_of(const api::TrainingJob& job);

}  // namespace muster::kube
