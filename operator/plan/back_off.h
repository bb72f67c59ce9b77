#pragma once

#include "operator/plan/values.h"

namespace muster::plan {

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
