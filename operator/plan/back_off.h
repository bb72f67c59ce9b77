#pragma once

#include "operator/plan/values.h"

namespace muster::plan {

// Restarts of one index: the first at once, then 1 s, 2 s, 4 s, ... apart, at most 5 minutes; from
// the start again after an attempt that ran for 10 minutes.
inline constexpr std::chrono::seconds kFirstBackOff{1};
inline constexpr std::chrono::seconds kLongestBackOff{300};
inline constexpr std::chrono::minutes kRanWell{10};

// The delay before the next restart, given how many there were since it last ran well.
std::chrono::seconds back_off(int failures_in_row);

// Notes in the record when the attempt after this end may start.
void delay_restart(api::ReplicaRecord& record, const ObservedReplica& ended, Time now);

// A time further away than any back-off was noted by a clock that has been set back since: it is
// over.
bool back_off_is_over(const api::ReplicaRecord& record, Time now);

}  // namespace muster::plan
