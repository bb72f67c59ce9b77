#pragma once

#include <chrono>
#include <string>

#include "operator/plan/draft.h"

namespace muster::plan {

// Functions that all kinds of restarts share: of a replica after its end (ends.h), of the trainer
// in its container (in_place.h), and of the whole group when its size changes (scaling.h).

// Whether the replica should not run: its index is not wanted now, or it is of an older run.
bool is_unwanted(const Draft& draft, const ObservedReplica& replica);

// How long after a replica's end a program of one's own may take to notice that this peer is lost,
// and end as well. By default NCCL's operations time out after 10 minutes, counted from their
// start, and the process takes a while to end after that.
inline constexpr std::chrono::minutes kRoundTime{15};

// Counts one more failure if the limit allows it, and returns whether it does. Replicas that fail
// together, in a round, use up one restart: the first one opens the round, and others join it. The
// evaluator has a limit of its own, without rounds.
//
// With `training`, any other replica joins until all failed replicas are ready again; a replica
// that fails a second time in the round opens the next round. For a user's own program, readiness
// has no meaning. There a replica joins if its process was running when another replica of the
// round failed, at most kRoundTime before, because its end may be a consequence of that failure.
// This also holds for a replacement that started before all peers of the lost replica had ended.
//
// `ended` is null for a restart in place, whose times are not known: its time is now, and it joins
// if the replica has not failed in the round.
bool count_failure(Draft& draft, api::ReplicaRecord& record, const ObservedReplica* ended,
                   const std::string& reason);
// Ends the round once all replicas that have failed in it are done, are not wanted or, with
// `training`, are ready again.
void end_round(Draft& draft);
void leave_round(api::ReplicaRecord& record);
// Returns `end` with the words that no restart is left.
std::string limit_used_up(const Draft& draft, const std::string& end);

// Marks the replica as failed for good, and fails the job too, unless the replica is an evaluator
// or a worker that the job can do without (enableDynamicWorker with restartPolicy Never).
void give_up(Draft& draft, api::ReplicaRecord& record, const std::string& reason,
             const std::string& message);

// Begins a new run, for RestartJob or because the group has changed (scaling.h). All earlier
// successes become void.
void restart_everybody(Draft& draft);

// Delays between the restarts of one index: none before the first restart, then 1 s, 2 s, 4 s, ...,
// at most 5 minutes. After an attempt that ran for 10 minutes the delays begin anew.
inline constexpr std::chrono::seconds kFirstBackOff{1};
inline constexpr std::chrono::seconds kLongestBackOff{300};
inline constexpr std::chrono::minutes kRanWell{10};

// Returns the delay before the next restart, given the number of restarts since the index last ran
// well.
std::chrono::seconds back_off(int failures_in_row);

// Notes in the record when the attempt after this end may start.
void delay_restart(api::ReplicaRecord& record, const ObservedReplica& ended, Time now);

// Whether the next attempt may start. A back-off whose end is further away than the longest
// back-off counts as over: the clock has been set back since.
bool back_off_is_over(const api::ReplicaRecord& record, Time now);

}  // namespace muster::plan
