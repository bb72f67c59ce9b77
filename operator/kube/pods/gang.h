#pragma once

#include "operator/api/training_job.h"

namespace muster::kube {

// spec.schedulingPolicy: what it puts on a pod, by the gang scheduler that it names.

inline constexpr const char* kGroupLabel = "scheduling.x-k8s.io/pod-group";  // scheduler-plugins
inline constexpr const char* kGroupAnnotation = "scheduling.k8s.io/group-name";  // volcano

Json gang_labels(const api::TrainingJob& job);
Json gang_annotations(const api::TrainingJob& job);
// schedulerName and priorityClassName, where the policy asks for them.
Json gang_pod_spec(const api::TrainingJob& job);

}  // namespace muster::kube
