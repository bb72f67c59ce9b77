#include "operator/plan/back_off.h"

#include <algorithm>

namespace muster::plan {

std::chrono::seconds back_off(int failures_in_row) {
  if (failures_in_row <= 0) return std::chrono::seconds(0);
  const int doublings = std::min(failures_in_row - 1, 20);
  return std::min(kFirstBackOff * (1 << doublings), kLongestBackOff);
}

void delay_restart(api::ReplicaRecord& record, const ObservedReplica& ended, Time now) {
  const Time finished = std::min(ended.finished.value_or(now), now);
  const bool is_over = ended.phase == Phase::failed || ended.phase == Phase::succeeded;
  if (is_over && ended.started && finished - *ended.started >= kRanWell) record.failures_in_row = 0;
  record.not_before = finished + back_off(record.failures_in_row);
  record.failures_in_row = std::min(record.failures_in_row, 1000) + 1;
}

bool back_off_is_over(const api::ReplicaRecord& record, Time now) {
  return record.not_before <= now || record.not_before - now > kLongestBackOff;
}

}  // namespace muster::plan
