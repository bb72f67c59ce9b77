#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Restarts within a replica that keeps living: by the kubelet, or by the supervisor that is PID 1
// of the trainer's container. They are over when they are seen, and still count against
// backoffLimit.

// Returns how often a supervisor may restart this role's trainer (within its window, see
// trainer/supervise/restart_rule.h) before the replica ends: never more than the limit leaves, and
// 0 if restartPolicy or a failure rule must judge each end.
int restarts_in_place(const api::TrainingJob& job, Role role);

// Counts the restarts of replicas in view that their records do not have yet, each once, while the
// job is active. A restart of a living replica is judged like an end with its last exit code
// (failure.h): it may fail the job or restart all replicas. Restarts of a failed replica are only
// counted, because its end is judged by itself. Restarts of replicas that are not wanted any more
// are not counted (restarts.h).
void count_restarts_in_place(Draft& draft);

// Counts the restarts of a replica that has succeeded. They do not undo its success: they count
// only up to the limit.
void count_restarts_of_success(Draft& draft, const ObservedReplica& replica);

}  // namespace muster::plan
