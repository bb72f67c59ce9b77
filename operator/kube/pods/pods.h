#pragma once

#include <string>

#include "operator/plan/values.h"

namespace muster::kube {

// What every pod of this operator is made with.
struct PodSettings {
  std::string trainer_image;      // of jobs with `training` whose template names none
  std::string image_pull_policy;  // of it; empty: Kubernetes' default
  std::string cluster_domain;     // "cluster.local"; empty: addresses end in .svc
};

// The Pod of one attempt of one replica, whole: the role's template over our defaults, then what
// makes it that replica (name, labels, owner, tracking finalizer, environment), which wins. Pure:
// the same arguments give the same object. The container that counts (templates.h) keeps the name
// that the template gives it.
Json pod_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
            const PodSettings& settings);

// The same for pods that differ only in which replica of which job they are: one dry run does for
// all of them.
std::string template_key(const Json& pod);

// The ownerReference of whatever belongs to the job, as its controller.
Json owner_reference(const api::TrainingJob& job);

// The headless Service that gives every current replica its address, ready or not.
Json service_of(const api::TrainingJob& job);

// The PodGroup of a job with gang scheduling, or null where it has none.
Json pod_group_of(const api::TrainingJob& job);

}  // namespace muster::kube
