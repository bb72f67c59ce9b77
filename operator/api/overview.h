#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::api {

// What `kubectl get` shows of a status: its columns can pick a value, but neither join two nor
// weigh one condition against another.

// How the job stands, by its conditions: Pending, Running, Recovering (it has trained, and has
// lost replicas with their node, by eviction or by preemption), Restarting, NotAccepted,
// Suspending, Suspended, Failing (decided, replicas are stopping), Completing (the same of a
// success), Failed or Succeeded.
std::string state_word(const JobStatus& status);

// Replicas that are ready of those that run or shall: "3/4". "" before any is counted.
std::string ready_text(const JobStatus& status);

// Steps done of all there are: "1200/3750", "1200" where nobody has said how many there are, ""
// where nobody has said anything.
std::string steps_text(const JobStatus& status);

}  // namespace muster::api
