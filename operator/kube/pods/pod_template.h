#pragma once

#include <string>

#include "operator/kube/pods/pods.h"

namespace muster::kube {

inline constexpr const char* kDefaultContainer = "trainer";
inline constexpr const char* kKeysVolume = "muster-tls";

// Returns the PodSpec over which a role's template is merged. `container` is the name of the
// container that counts.
//
// With `training`: the trainer image; ports for peers and HTTP; ready when /healthz answers; user,
// group and fsGroup 65532, no privileges, a read-only root with /tmp; no service-account token; a
// grace period of 120 s; training.yaml and, if the job keeps checkpoints, the file of requests for
// one, projected from the pod's annotations; the job's key pair, if it has one.
// With `device: cuda`, except for a ps: the trainer's image with CUDA; as many nvidia.com/gpu as
// `devices`, unless the template asks for some; a toleration of their taint; /dev/shm in memory.
// With any image: requests of 100m CPU and 256Mi, unless the template says how much CPU or memory
// the container or the pod needs; TF_CONFIG and MUSTER_*; the job's storage; 30 s on a node that
// does not answer; the tail of the log as the termination message of an error.
Json default_pod_spec(const api::TrainingJob& job, const plan::CreateReplica& replica,
                      const std::string& container, const PodSettings& settings);

// Whether this replica publishes the job's checkpoints, and watches a file for requests for
// checkpoints.
bool takes_requests(const api::TrainingJob& job, api::Role role, int index);

// The largest NAME=value, in bytes, that Linux accepts when it starts a program.
inline constexpr size_t kLongestVariable = 128 * 1024 - 1;
// Returns the bytes of an entry of `env` as NAME=value.
size_t size_of_variable(const Json& variable);

// Passes a TF_CONFIG that is longer than kLongestVariable as a file beside training.yaml, which
// MUSTER_TF_CONFIG names. Only for pods of jobs with `training`.
void move_long_tf_config(Json& pod, const std::string& container);

// Returns "Never", unless the template asks for restarts by the kubelet and the role allows them:
// then "OnFailure". (With "Always" a replica would never end.)
std::string restart_policy_of(const api::TrainingJob& job, api::Role role, const Json& users_spec);

}  // namespace muster::kube
