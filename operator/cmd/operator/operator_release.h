#pragma once

#include <chrono>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/api/client.h"
#include "operator/kube/api/lease.h"

namespace muster::cmd {

struct ReleaseOptions {
  std::vector<std::string> namespaces;  // whose pods; empty: of all
  kube::ObjectName deployment;          // of the operators, scaled to 0 first; no name: none
  bool elects_leader = true;            // the operators do, by `lease`
  kube::LeaseSettings lease;
  int at_a_time = 16;
  std::chrono::milliseconds timeout{120'000};  // for everything
  std::chrono::milliseconds pause{1'000};      // before what has failed is tried again
};

// Implements muster-operator release-pods: takes the tracking finalizer off the pods of all jobs,
// so that they can be deleted when there is no operator any more. No operator may run meanwhile,
// since it would make further pods. So their Deployment is scaled down, and their lease is taken
// and held; if they have no lease, this function waits for their end. The lease of operators that
// were scaled down is deleted at the end. Throws Unavailable if that, or a pod's release, has not
// succeeded in time or before `stop`; then it can be run again. OperatorProcess describes the
// transports.
void release_pods(kube::Transport& calls, kube::Transport& lease, const ReleaseOptions& options,
                  const std::stop_token& stop);

}  // namespace muster::cmd
