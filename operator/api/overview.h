#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::api {

// Texts that `kubectl get` shows of a status: its columns can pick a value, but neither join two
// values nor weigh one condition against another.

// Returns the state of the job by its conditions: Pending, Running, Recovering (it has trained, and
// has lost replicas with their node, by eviction or by preemption), Restarting, NotAccepted,
// Suspending, Suspended, the reason for which a queue holds it (Queued, Preempted, Evicted,
// Deactivated), Failing (failure is decided, replicas are stopping), Completing (success is
// decided, replicas are stopping), Failed or Succeeded.
std::string state_word(const JobStatus& status);

// Returns the ready replicas of those that run or should run: "3/4"; "" before any is counted.
std::string ready_text(const JobStatus& status);

// Returns the steps done of all steps: "1200/3750"; "1200" if the total is not known; "" if no step
// is known.
std::string steps_text(const JobStatus& status);

}  // namespace muster::api
