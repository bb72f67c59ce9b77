#pragma once

#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the PodDisruptionBudget of a job with schedulingPolicy.maxUnavailable, or null.
//
// It counts the replicas that must stay, for Kubernetes would ask the job's `scale` how many there
// are, which knows only the workers. A replica that is not ready may always be evicted: it must not
// keep a node from being drained.
Json disruption_budget_of(const api::TrainingJob& job);

}  // namespace muster::kube
