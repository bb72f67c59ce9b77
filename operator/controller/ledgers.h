#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "common/threads/mutex.h"
#include "operator/plan/job_ledger.h"
#include "operator/plan/values.h"

namespace muster::controller {

// The ledgers of the jobs that this controller looks at (plan/job_ledger.h). Between two looks the
// time is measured by the monotonic clock; a job that another operator has looked at last goes on
// from its status, with the wall clock for the gap. Thread-safe.
class Ledgers {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // Counts the time of a job until now, by the wall clock and the monotonic one, before the status
  // of `plan` is written. Sets status.goodput in it if the status is written anyway.
  void look(const api::TrainingJob& job, const plan::Observed& observed, plan::Plan& plan,
            api::Time now, Moment ticks);
  // The number of finished jobs that are kept, the newest ones.
  static constexpr size_t kMostFinished = 1000;

  // Forgets a job that is gone.
  void forget(const std::string& key);

  struct Job {
    std::string name_space, name;
    plan::JobLedger ledger;
    bool finished = false;
  };
  // Calls `show` with each job that is not forgotten, one after the other.
  void each(const std::function<void(const Job& job)>& show) const;
  // Returns the seconds of all jobs since this process began, by namespace.
  std::map<std::string, TimeSpent> by_namespace() const;

 private:
  struct Entry {
    Job job;
    std::string uid;
    Moment counted;
    api::Time until;  // the wall clock's time of `counted`
  };
  void keep_finished(const std::string& key) MUSTER_REQUIRES(mutex_);
  static Entry begin(const api::TrainingJob& job, api::Time now, Moment ticks);

  mutable Mutex mutex_;
  std::map<std::string, Entry> jobs_ MUSTER_GUARDED_BY(mutex_);
  std::deque<std::string> finished_ MUSTER_GUARDED_BY(mutex_);  // keys, the oldest first
  std::map<std::string, TimeSpent> by_namespace_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
