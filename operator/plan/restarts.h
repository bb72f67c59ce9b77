#pragma once

#include <string>

#include "operator/plan/draft.h"

namespace muster::plan {

// The consequences that all restarts share: after a replica's end (ends.h), of the trainer in its
// container (in_place.h), and of the whole group when its size changes (scaling.h).

// Whether no replica should run under this index now, or none from that run.
bool is_unwanted(const Draft& draft, const ObservedReplica& replica);

// Counts one more failure if the limit allows it, and returns whether it does. Replicas that fail
// together, in a round, use up one restart: the first one opens the round, any other joins it, and
// one that has failed in it already opens the next. The evaluator has a limit of its own, without
// rounds.
bool count_failure(Draft& draft, api::ReplicaRecord& record);
// Ends the round once all replicas that have failed in it are ready again, are done or are not
// wanted.
void end_round(Draft& draft);
// Returns `end` and the addition that no restart is left.
std::string limit_used_up(const Draft& draft, const std::string& end);

// Marks the replica as failed for good, and fails the job with it, unless it is an evaluator, or a
// worker that may be missing: one that is never restarted, under enableDynamicWorker.
void give_up(Draft& draft, api::ReplicaRecord& record, const std::string& reason,
             const std::string& message);

// Begins a new run, for RestartJob or because the group has changed (scaling.h). All earlier
// successes become void.
void restart_everybody(Draft& draft);

}  // namespace muster::plan
