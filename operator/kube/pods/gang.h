#pragma once

#include "operator/api/training_job.h"

namespace muster::kube {

// The fields of a pod that come from spec.schedulingPolicy and its gang scheduler.

inline constexpr const char* kGroupLabel = "scheduling.x-k8s.io/pod-group";  // scheduler-plugins
inline constexpr const char* kGroupAnnotation = "scheduling.k8s.io/group-name";  // volcano

Json gang_labels(const api::TrainingJob& job);
Json gang_annotations(const api::TrainingJob& job);
// Returns schedulerName and priorityClassName, if the policy sets them.
Json gang_pod_spec(const api::TrainingJob& job);

}  // namespace muster::kube
