#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::kube {

// The names of Muster's objects, and of the labels and annotations on them.

inline constexpr const char* kJobLabel = "muster.dev/job";
inline constexpr const char* kJobUidLabel = "muster.dev/job-uid";
// The role's name in the manifest, maybe master.
inline constexpr const char* kRoleLabel = "muster.dev/role";
inline constexpr const char* kIndexLabel = "muster.dev/index";
inline constexpr const char* kAttemptLabel = "muster.dev/attempt";
inline constexpr const char* kRunLabel = "muster.dev/run";
inline constexpr const char* kCurrentLabel = "muster.dev/current";  // "true": in the Service
// The container whose end decides.
inline constexpr const char* kContainerLabel = "muster.dev/container";
// kFixedPorts: the pod's collectives listen on ports from kPeerPort to kLastPeerPort.
inline constexpr const char* kPortsLabel = "muster.dev/ports";
inline constexpr const char* kFixedPorts = "fixed";
inline constexpr const char* kTrainingAnnotation = "muster.dev/training";
// Holds a TF_CONFIG that is too long for a variable.
inline constexpr const char* kTfConfigAnnotation = "muster.dev/tf-config";
inline constexpr const char* kTrackingFinalizer = "muster.dev/tracking";

inline constexpr int kPeerPort = 2222;  // rendezvous, parameter servers
// Collectives: the ports after kPeerPort up to kLastPeerPort.
inline constexpr int kLastPeerPort = 2254;
inline constexpr int kHttpPort = 8080;  // /metrics, /healthz, /progress

// Returns the job's key in mirrors and messages: "default/mnist".
std::string key_of(const api::TrainingJob& job);

// Returns the host name that all attempts of a replica share: "mnist-worker-0". In a job that a
// TFJob owns, the host name is also the name of the replica's pods and of its Service.
std::string host_name(const api::TrainingJob& job, api::Role role, int index);

// Returns "mnist-worker-0-x7k2p": the last part is computed from the job's UID and the attempt, so
// that a repeated or late creation finds its name taken. At most 63 characters. The names of a
// TFJob's pods have no such last part: all attempts of a replica have the same name.
std::string pod_name(const api::TrainingJob& job, api::Role role, int index, int attempt);

// Returns "mnist-worker-0.mnist.default.svc:2222", for a TFJob "mnist-worker-0.default.svc:2222",
// with the cluster's domain after "svc" unless it is empty.
std::string peer_address(const api::TrainingJob& job, api::Role role, int index,
                         const std::string& cluster_domain);

// Returns the selector of all objects of a job or, with a role, of the role's pods.
std::string label_selector(const api::TrainingJob& job);
std::string label_selector(const api::TrainingJob& job, api::Role role);

}  // namespace muster::kube
