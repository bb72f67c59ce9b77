#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/api/client.h"
#include "operator/kube/api/lease.h"

namespace muster::cmd {

struct ReleaseOptions {
  std::vector<std::string> namespaces;  // namespaces of the pods; empty: all
  // The operators' Deployment, which is scaled to 0 first; no name: none.
  kube::ObjectName deployment;
  bool elects_leader = true;  // whether the operators elect a leader, by `lease`
  kube::LeaseSettings lease;
  int at_a_time = 16;
  std::chrono::milliseconds timeout{120'000};  // time limit of the whole command
  std::chrono::milliseconds pause{1'000};      // pause before a failed call is repeated
};

// Implements muster-operator release-pods: removes the tracking finalizer from the pods of all
// jobs, so that the pods can be deleted when there is no operator any more. No operator may run at
// the same time, because it would create more pods. So this function scales the operators'
// Deployment down, and takes and holds their lease; if they have no lease, it waits until the
// operators have ended. At the end it deletes the lease of operators that it has scaled down.
// Throws Unavailable if a step, or the release of a pod, has not succeeded in time or before
// `stop`; the command can then be run again. OperatorProcess describes the transports.
void release_pods(kube::Transport& calls, kube::Transport& lease, const ReleaseOptions& options,
                  const std::stop_token& stop);

}  // namespace muster::cmd
