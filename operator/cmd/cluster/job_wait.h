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

// Waits until all jobs have finished. Meanwhile shows on `out` each change of a job's state, the
// progress, the results of a training that has succeeded, and a note if no operator looks at a job.
// Returns the first exit code of a job that is not 0, as in docs/reference/exit-codes.md. The code
// of a job is: 0 if it succeeded; kNotEvaluated if an evaluation is missing in its results;
// kDeadline if its deadline has passed; else the deciding replica's own code if a program chose it,
// else kInternal. The code is kBadInput as soon as the operator says that the template is invalid,
// because waiting does not change that. Waits for an API server that does not answer. Throws
// Unavailable when the timeout is over, and at the end Invalid, with the exit code, if a job was
// deleted meanwhile.
int wait_until_finished(const ClusterAccess& cluster, const std::vector<kube::ObjectName>& jobs,
                        const WaitOptions& options, FILE* out);

// Waits until neither the job with this UID nor any of its pods exists. Throws Unavailable when the
// timeout is over.
void wait_until_gone(const ClusterAccess& cluster, const api::TrainingJob& job,
                     const WaitOptions& options);

}  // namespace muster::cmd
