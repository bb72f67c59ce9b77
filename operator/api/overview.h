#pragma once

#include <string>

#include "operator/api/training_job.h"

namespace muster::api {

// Texts of a status that `kubectl get` shows. A column of kubectl can only pick one value: it
// cannot join two values or choose between conditions.

// Returns the state of the job by its conditions: Pending, Running, Recovering (it has trained, and
// has lost replicas with their node, by eviction or by preemption), Restarting, Stalled,
// NotAccepted, Suspending, Suspended, the reason why a queue holds the job (Queued, Preempted,
// Evicted, Deactivated), Failing (failure is decided, replicas are stopping), Completing (success
// is decided, replicas are stopping), Failed or Succeeded.
std::string state_word(const JobStatus& status);

// Returns whether a job that has trained lacks replicas. One that was suspended counts no losses
// until it has run again.
bool has_lost_replicas(const JobStatus& status);
inline constexpr const char* kStateWords[] = {"Pending", "Running",     "Recovering", "Restarting",
                                              "Stalled", "NotAccepted", "Suspending", "Suspended",
                                              "Queued",  "Preempted",   "Evicted",    "Deactivated",
                                              "Failing", "Completing",  "Failed",     "Succeeded"};

// Returns the number of ready replicas and the number that run or should run: "3/4"; "" before any
// replica is counted.
std::string ready_text(const JobStatus& status);

// Returns the number of steps done and of all steps: "1200/3750"; "1200" if the total is not known;
// "" if the steps done are not known.
std::string steps_text(const JobStatus& status);

}  // namespace muster::api
