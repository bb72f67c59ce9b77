#pragma once

#include "operator/plan/values.h"

namespace muster::plan {

// Delays between the restarts of one index: the first restart comes at once, then 1 s, 2 s, 4 s,
// ... apart, at most 5 minutes; after an attempt that ran for 10 minutes they begin anew.
inline constexpr std::chrono::seconds kFirstBackOff{1};
inline constexpr std::chrono::seconds kLongestBackOff{300};
inline constexpr std::chrono::minutes kRanWell{10};

// Returns the delay before the next restart, given the number of restarts since the index last ran
// well.
std::chrono::seconds back_off(int failures_in_row);

// Notes in the record when the attempt after this end may start.
void delay_restart(api::ReplicaRecord& record, const ObservedReplica& ended, Time now);

// Whether the next attempt may start. A time further away than any back-off was noted by a clock
// that has been set back since: it counts as over.
bool back_off_is_over(const api::ReplicaRecord& record, Time now);

}  // namespace muster::plan
