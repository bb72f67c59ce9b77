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

// Returns the state and its condition: "Failed (PermanentExitCode): worker-0 ended with ...".
std::string state_text(const api::JobStatus& status);

// Shows on `out`, until all the jobs have finished, each change of a job's state as it happens,
// progress, the results of a training that has succeeded, and a note if no operator looks at a job.
// Returns the exit code of the first job that ended with another code than 0, as docs/exit-codes.md
// has it: 0 if it succeeded, kNotEvaluated if its results lack some data's, kDeadline if its
// deadline had passed, the deciding replica's own if that is one a program chose, else kInternal;
// kBadInput as soon as the operator has said that the template is invalid, which does not change by
// waiting. Waits for an API server that does not answer. Throws Unavailable when the time is over,
// and Invalid, with that code, in the end if a job was deleted meanwhile.
int wait_until_finished(const ClusterAccess& cluster, const std::vector<kube::ObjectName>& jobs,
                        const WaitOptions& options, FILE* out);

// Waits until neither the job of this UID nor a pod of it is there. Throws Unavailable when the
// time is over.
void wait_until_gone(const ClusterAccess& cluster, const api::TrainingJob& job,
                     const WaitOptions& options);

}  // namespace muster::cmd
