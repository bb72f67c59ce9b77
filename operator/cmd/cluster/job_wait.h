#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "operator/cmd/cluster/cluster_access.h"
#include "operator/cmd/show/attention.h"

namespace muster::cmd {

struct WaitOptions {
  std::chrono::seconds timeout{0};  // 0: none
  std::chrono::milliseconds every{1000};
  std::chrono::milliseconds operator_takes = kOperatorTakes;  // attention.h
};

// "Failed (PermanentExitCode): worker-0 ended with ...": the state, and the condition it is of.
std::string state_text(const api::JobStatus& status);

// Shows on `out` each change of state of all the jobs as it happens, progress, what a training that
// has succeeded has come to, and that no operator looks at a job, until all have finished. Returns
// the exit code of the job that was the first to end with another one than 0, as docs/exit-codes.md
// has it: 0 where it succeeded, kNotEvaluated where its results lack some data's, kDeadline where
// its deadline had passed, the deciding replica's own where that is one a program chose, else
// kInternal; kBadInput as soon as the operator has said that the template is invalid, which no
// waiting mends. An API server that does not answer is waited for. Throws Unavailable when the time
// is over, and Invalid, with that code, in the end where a job was deleted meanwhile.
int wait_until_finished(const ClusterAccess& cluster, const std::vector<kube::ObjectName>& jobs,
                        const WaitOptions& options, FILE* out);

// Until neither the job of this UID nor a pod of it is there. Throws Unavailable when the time is
// over.
void wait_until_gone(const ClusterAccess& cluster, const api::TrainingJob& job,
                     const WaitOptions& options);

}  // namespace muster::cmd
