#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/net/key_pair.h"
#include "operator/plan/values.h"

namespace muster::kube {

// The settings that all pods of this operator share.
struct PodSettings {
  std::string trainer_image;       // for jobs with `training`, if the template names no image
  std::string trainer_cuda_image;  // for the replicas of these jobs that compute on GPUs
  std::string image_pull_policy;   // for both images; empty: Kubernetes' default
  std::string cluster_domain;      // "cluster.local"; empty: addresses end in .svc
  // The service accounts that templates may name beside `default`; empty: any.
  std::set<std::string> allowed_accounts = {};
};

// Removes from every container the variables whose names `drops` accepts; a value that is not a
// list stays.
void drop_variables(Json& containers, bool (*drops)(const std::string&));

// Returns the complete Pod of one attempt of one replica: the role's template merged over our
// defaults, and over both the fields that identify the replica (name, labels, owner, tracking
// finalizer, environment). Pure: the same arguments give the same object. The container that counts
// (templates.h) keeps the name that the template gives it.
Json pod_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
            const PodSettings& settings);

// Returns the pod of pod_of() with a preference against the nodes on which a replica of the job has
// lost a GPU. The pod still runs there if there are no other nodes. A template whose affinity has
// wrong types is left alone: the API server refuses it.
Json elsewhere(const api::TrainingJob& job, Json pod);

// Returns why this operator does not create such a pod, although the API server may accept it: its
// service account is not allowed by the settings, or one of its variables is too long to start a
// program. Returns nothing for a pod that may be created.
std::optional<std::string> refusal_of(const Json& pod, const PodSettings& settings);

// Returns the same key for pods that differ only in job and replica: one dry run is enough for all
// of them.
std::string template_key(const Json& pod);

// Returns the ownerReference of an object that belongs to the job, with the job as its controller.
Json owner_reference(const api::TrainingJob& job);

// Returns the metadata of an object of this name that belongs to the job and is not a pod.
Json belonging_metadata(const api::TrainingJob& job, const std::string& name);

// Returns the headless Services that give every current replica its address, ready or not: one
// Service for the job; for a job that a TFJob owns, one for each replica.
std::vector<Json> services_of(const api::TrainingJob& job);

// Returns the Secret with the key pair of status.security, which must name one.
Json secret_of(const api::TrainingJob& job, const KeyPair& pair);

// Returns the PodGroup of a job with gang scheduling, or null if it has none.
Json pod_group_of(const api::TrainingJob& job);

}  // namespace muster::kube
