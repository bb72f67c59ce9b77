#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::kube {

// Returns the NetworkPolicy of a job with `training`; null for any other job, and if `http_peers`
// is null. The policy allows connections to the job's pods:
// - to the ports for peers: only from pods of the same job;
// - to the port of /metrics, /healthz and /progress: from `http_peers`, a list of
//   NetworkPolicyPeers.
// The policy does not restrict what the pods send. The policy covers only pods with kPortsLabel:
// pods of an older operator, whose collectives have no fixed ports, could not reach each other
// under it.
Json network_policy_of(const api::TrainingJob& job, const Json& http_peers);

// Reads a list of NetworkPolicyPeers. Throws Invalid for an empty list, which would mean everybody.
Json to_http_peers(const std::string& text);

}  // namespace muster::kube
