#include "trainer/loop/synchronizers/member_report.h"

#include "trainer/loop/synchronizers/step_times.h"

namespace muster::loop {

void MemberReport::set(const MemberState& state) {
  const MutexLock lock(mutex_);
  state_ = state;
}

void MemberReport::leave() {
  const MutexLock lock(mutex_);
  leaving_ = true;
}

void MemberReport::add(const collective::ComputingTime& time) {
  const MutexLock lock(mutex_);
  add_to_average(average_, time);
}

void MemberReport::fill(PeerMessage& message) const {
  const MutexLock lock(mutex_);
  *message.mutable_member() = state_;
  message.set_leaving(leaving_);
  message.set_computing_seconds(average_.seconds);
  message.set_input_seconds(average_.input);
}

}  // namespace muster::loop
