#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Restarts within a replica that goes on living: by the kubelet, or by the supervisor that is PID 1
// of the trainer's container. They are over when they are seen, and still count against
// backoffLimit.

// How often a supervisor may restart this role's trainer (within its window, see
// trainer/supervise/restart_rule.h) before the replica ends: never more than the limit leaves, and
// not at all where restartPolicy or a failure rule wants a say in each end.
int restarts_in_place(const api::TrainingJob& job, Role role);

// Counts what restarts the replicas in view have more than their records know, each once, while the
// job is active. That of a living replica is judged like an end with its last exit code
// (failure.h): it may fail the job or restart everybody. A failed one's only count: its end is
// judged by itself. Not counted: those of replicas that nobody wants any more (restarts.h).
void count_restarts_in_place(Draft& draft);

// The same for one that has succeeded, which no restart undoes: they count as far as the limit
// goes.
void count_restarts_of_success(Draft& draft, const ObservedReplica& replica);

}  // namespace muster::plan
