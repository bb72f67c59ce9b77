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
  std::string trainer_image;       // of jobs with `training` whose template names none
  std::string trainer_cuda_image;  // of those replicas of them that compute on GPUs
  std::string image_pull_policy;   // of both; empty: Kubernetes' default
  std::string cluster_domain;      // "cluster.local"; empty: addresses end in .svc
  // The service accounts that templates may name beside `default`; empty: any.
  std::set<std::string> allowed_accounts = {};
};

// Drops the variables whose names `drops` accepts from every container; what is no list stays.
void drop_variables(Json& containers, bool (*drops)(const std::string&));

// Returns the complete Pod of one attempt of one replica: the role's template over our defaults,
// then the fields that make it that replica (name, labels, owner, tracking finalizer, environment),
// which win. Pure: the same arguments give the same object. The container that counts (templates.h)
// keeps the name that the template gives it.
Json pod_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
            const PodSettings& settings);

// Returns the pod of pod_of() with the wish to run on none of the nodes on which a replica of the
// job has lost a GPU. Where there are no other nodes, it still runs. A template whose affinity has
// not the types that it should have is left alone: the API server refuses it.
Json elsewhere(const api::TrainingJob& job, Json pod);

// Returns why this operator makes no such pod, although the API server may take it: a service
// account that the settings do not allow, a variable that is too long to start a program with.
// Returns nothing for a pod that it makes.
std::optional<std::string> refusal_of(const Json& pod, const PodSettings& settings);

// Returns the same key for pods that differ only in job and replica: one dry run is enough for all
// of them.
std::string template_key(const Json& pod);

// Returns the ownerReference of an object that belongs to the job, with the job as its controller.
Json owner_reference(const api::TrainingJob& job);

// Returns the metadata of an object of this name that belongs to the job beside its pods.
Json belonging_metadata(const api::TrainingJob& job, const std::string& name);

// Returns the headless Services that give every current replica its address, ready or not: one for
// the job, or for a job that a TFJob owns one for each replica.
std::vector<Json> services_of(const api::TrainingJob& job);

// Returns the Secret with the key pair of status.security, which must name one.
Json secret_of(const api::TrainingJob& job, const KeyPair& pair);

// Returns the PodGroup of a job with gang scheduling, or null if it has none.
Json pod_group_of(const api::TrainingJob& job);

}  // namespace muster::kube
