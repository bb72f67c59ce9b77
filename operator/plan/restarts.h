#pragma once

#include <chrono>
#include <string>

#include "operator/plan/draft.h"

namespace muster::plan {

// The consequences that all restarts share: after a replica's end (ends.h), of the trainer in its
// container (in_place.h), and of the whole group when its size changes (scaling.h).

// Whether no replica should run under this index now, or none from that run.
bool is_unwanted(const Draft& draft, const ObservedReplica& replica);

// How long after a replica's end a program of one's own may take to notice that this peer is lost,
// and end as well. By default NCCL's operations time out after 10 minutes, counted from their start,
// and the process takes a while to end after that.
inline constexpr std::chrono::minutes kRoundTime{15};

// Counts one more failure if the limit allows it, and returns whether it does. Replicas that fail
// together, in a round, use up one restart: the first one opens the round, and others join it. The
// evaluator has a limit of its own, without rounds.
//
// With `training`, any other replica joins until all that have failed are ready again; one that has
// failed in the round already opens the next. Readiness says nothing of a program of one's own. So
// there a replica joins if the process that has ended was there when another one of the round
// failed, at most kRoundTime before: it may have ended because of that one. That holds for a
// replacement too, which started before all peers of the lost one had ended.
//
// `ended` is null for a restart in place, of which no times are known: it has ended now, and joins
// if the replica has not failed in the round.
bool count_failure(Draft& draft, api::ReplicaRecord& record, const ObservedReplica* ended);
// Ends the round once all replicas that have failed in it are done, are not wanted or, with
// `training`, are ready again.
void end_round(Draft& draft);
void leave_round(api::ReplicaRecord& record);
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
