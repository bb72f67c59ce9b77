#pragma once

#include <string>

#include "operator/plan/draft.h"

namespace muster::plan {

// What follows from a restart, however it came about: a replica's end (ends.h) or a restart within
// it (in_place.h).

// Nobody should run under this index now, or not from that run.
bool is_unwanted(const Draft& draft, const ObservedReplica& replica);

// How many more restarts may be counted; the evaluator has a limit of its own.
int restarts_left(const Draft& draft, const api::ReplicaRecord& record);
// Whether one more restart may be counted; counts it if so.
bool within_limit(Draft& draft, api::ReplicaRecord& record);
// `end` and that no restart is left.
std::string limit_used_up(const Draft& draft, const std::string& end);

// The replica has failed for good, and with it the job, unless it is an evaluator.
void give_up(Draft& draft, api::ReplicaRecord& record, const std::string& reason,
             const std::string& message);

// RestartJob: a new run; successes are void.
void restart_everybody(Draft& draft);

}  // namespace muster::plan
