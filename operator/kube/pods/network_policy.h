#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the NetworkPolicy of a job with `training`, or null for any other job, and where no
// `http_peers` are given. It lets in to the job's pods:
// - their peers' ports: the pods of the same job, and nobody else;
// - the port of /metrics, /healthz and /progress: `http_peers`, a list of NetworkPolicyPeers.
// The policy does not restrict what the pods send. Only pods with kPortsLabel are protected: those
// of an operator that gave its collectives no fixed ports would lose each other.
Json network_policy_of(const api::TrainingJob& job, const Json& http_peers);

// Reads a list of NetworkPolicyPeers. Throws Invalid for an empty one, which would mean everybody.
Json to_http_peers(const std::string& text);

}  // namespace muster::kube
