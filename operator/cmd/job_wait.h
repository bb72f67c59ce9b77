#pragma once

#include <chrono>
#include <cstdio>
#include <string>

#include "operator/cmd/cluster_access.h"

namespace muster::cmd {

struct WaitOptions {
  std::chrono::seconds timeout{0};  // 0: none
  std::chrono::milliseconds every{1000};
};

// "Failed (PermanentExitCode): worker-0 ended with ...": the state, and the condition it is of.
std::string state_text(const api::JobStatus& status);

// Shows on `out` each change of state, and progress, until the job has finished. Returns the exit
// code of docs/exit-codes.md: 0 where it succeeded, kDeadline where its deadline had passed, the
// deciding replica's own where that is one a program chose, else kInternal; kBadInput as soon as
// the operator has said that the template is invalid, which no waiting mends. An API server that
// does not answer is waited for. Throws Unavailable when the time is over, Invalid where the job is
// deleted meanwhile.
int wait_until_finished(const ClusterAccess& cluster, const std::string& name,
                        const WaitOptions& options, FILE* out);

// Until neither the job of this UID nor a pod of it is there. Throws Unavailable when the time is
// over.
void wait_until_gone(const ClusterAccess& cluster, const api::TrainingJob& job,
                     const WaitOptions& options);

}  // namespace muster::cmd
