#pragma once

#include <chrono>
#include <string>

#include "common/job/time_use.h"
#include "common/threads/mutex.h"

namespace muster {

// Counts what the time of the thread that made it is spent on, from TimeUse::starting on. Nothing
// else in the process is counted. A change of the use costs one look at the clock and one
// uncontended lock.
class TimeLedger {
 public:
  TimeLedger();
  ~TimeLedger();
  TimeLedger(const TimeLedger&) = delete;
  TimeLedger& operator=(const TimeLedger&) = delete;

  // Returns the ledger that the calling thread has made; null without one.
  static TimeLedger* of_this_thread();

  // Returns the use until now.
  TimeUse change(TimeUse use);
  // Counts `seconds` of what was spent on `from` as spent on `to`, but not more than there is.
  // Returns what was spent until now.
  TimeSpent move(TimeUse from, TimeUse to, double seconds);

  // Both are thread-safe.
  TimeSpent spent() const;
  // Returns {"process": a name that no other process has, "use": "computing", "seconds": {...}}.
  Json json() const;

 private:
  using Clock = std::chrono::steady_clock;
  TimeSpent spent_until(Clock::time_point now) const MUSTER_REQUIRES(mutex_);
  void count_until(Clock::time_point now) MUSTER_REQUIRES(mutex_);

  const std::string process_;
  mutable Mutex mutex_;
  TimeUse use_ MUSTER_GUARDED_BY(mutex_) = TimeUse::starting;
  Clock::time_point since_ MUSTER_GUARDED_BY(mutex_) = Clock::now();
  TimeSpent spent_ MUSTER_GUARDED_BY(mutex_);
};

// While it exists, the calling thread spends its time on `use`. Does nothing in a thread without a
// ledger.
class Spending {
 public:
  explicit Spending(TimeUse use) : ledger_(TimeLedger::of_this_thread()) {
    if (ledger_ != nullptr) before_ = ledger_->change(use);
  }
  ~Spending() {
    if (ledger_ != nullptr) ledger_->change(before_);
  }
  Spending(const Spending&) = delete;
  Spending& operator=(const Spending&) = delete;

 private:
  TimeLedger* const ledger_;
  TimeUse before_ = TimeUse::starting;
};

}  // namespace muster
