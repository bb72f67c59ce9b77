#include "common/program/time_ledger.h"

#include <algorithm>
#include <utility>

#include "common/random.h"

namespace muster {

namespace {

thread_local TimeLedger* of_thread = nullptr;

}  // namespace

TimeLedger::TimeLedger() : process_(random_digits()) {
  of_thread = this;
}

TimeLedger::~TimeLedger() {
  if (of_thread == this) of_thread = nullptr;
}

TimeLedger* TimeLedger::of_this_thread() {
  return of_thread;
}

TimeSpent TimeLedger::spent_until(Clock::time_point now) const {
  TimeSpent spent = spent_;
  spent[use_] += std::chrono::duration<double>(now - since_).count();
  return spent;
}

void TimeLedger::count_until(Clock::time_point now) {
  spent_ = spent_until(now);
  since_ = now;
}

TimeUse TimeLedger::change(TimeUse use) {
  const MutexLock lock(mutex_);
  count_until(Clock::now());
  return std::exchange(use_, use);
}

TimeSpent TimeLedger::move(TimeUse from, TimeUse to, double seconds) {
  const MutexLock lock(mutex_);
  count_until(Clock::now());
  const double moved = std::clamp(seconds, 0.0, spent_[from]);
  spent_[from] -= moved;
  spent_[to] += moved;
  return spent_;
}

TimeSpent TimeLedger::spent() const {
  const MutexLock lock(mutex_);
  return spent_until(Clock::now());
}

Json TimeLedger::json() const {
  const MutexLock lock(mutex_);
  return {
      {"process", process_}, {"use", name_of(use_)}, {"seconds", spent_until(Clock::now()).json()}};
}

}  // namespace muster
