#pragma once

#include <string>

#include "operator/plan/draft.h"

namespace muster::plan {

inline constexpr const char* kRestartPolicyNever = "RestartPolicyNever";  // a Verdict::reason

// The decision of the failure policy on the end of one replica.
struct Verdict {
  api::FailureAction action = api::FailureAction::restart_replica;
  bool counts = true;  // whether the end counts against backoffLimit
  std::string reason;  // reason of the condition that follows
};

// Whether the replica has ended because somebody deleted it. The exit code does not matter, because
// a program may ignore SIGTERM until it is killed. If a disruption deleted the replica, the
// function returns true only for exit code 143; with any other code the disruption is the reason of
// the end, and a failure rule may name it.
bool left_as_asked(const ObservedReplica& replica);

// Decides by the first of these rules that applies:
// 1. It left as asked (left_as_asked()): restarted and not counted, whatever the exit code; failure
//    rules do not apply. (restartPolicy Never still fails the job, because the replica will not
//    come back.)
// 2. The first failure rule that matches: each of its onExitCodes, onReasons and roles, if given,
//    must hold. `ignore` restarts the replica without counting, with the same back-off as any
//    restart, so that a crash loop that is ignored stays a slow one.
// 3. restartPolicy Never: the job fails (with enableDynamicWorker a worker is given up instead).
// 4. A disruption: restarted, not counted.
// 5. With `training`, a permanent exit code (common/exit_code.h): the job fails.
// 6. Otherwise: restarted and counted.
//
// An evaluator never fails or restarts the job: for it, fail_job means that it is given up, and
// restart_job that it alone is restarted.
Verdict judge(const api::TrainingJob& job, const ObservedReplica& replica);

// Sets FailureTarget, once and irrevocably. Precondition: nothing was decided before.
void decide_failure(Draft& draft, const std::string& reason, const std::string& message);

// Whether the replica should run on another node, because its exit code says that a GPU of its node
// is lost. Only jobs with `training` are considered: other programs may use the same exit code for
// anything.
bool asks_for_another_node(const api::TrainingJob& job, const ObservedReplica& replica);

}  // namespace muster::plan
