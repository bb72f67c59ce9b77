#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Restarts in place: the replica stays, and the kubelet or the supervisor (PID 1 of the trainer's
// container) starts its program again. The operator sees these restarts only afterwards, and counts
// them against backoffLimit.

// Returns how often a supervisor may restart this role's trainer (within its window, see
// trainer/supervise/restart_rule.h) before the replica ends: at most the restarts that backoffLimit
// leaves, and 0 if restartPolicy or a failure rule must judge each end.
int restarts_in_place(const api::TrainingJob& job, Role role);

// Counts, each once, the restarts in place of replicas in view that are not in their records yet.
// Does so only while the job is active. A restart of a living replica is judged like an end with
// its last exit code (failure.h): it may fail the job or restart all replicas. Restarts of a failed
// replica are counted and not judged, because ends.h judges the replica's end. Restarts of replicas
// that are not wanted any more are not counted (restarts.h).
void count_restarts_in_place(Draft& draft);

// Counts the restarts of a replica that has succeeded. Such restarts do not undo the success: they
// count only up to the limit.
void count_restarts_of_success(Draft& draft, const ObservedReplica& replica);

}  // namespace muster::plan
