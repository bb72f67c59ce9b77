#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/threads/mutex.h"
#include "operator/plan/job_ledger.h"
#include "operator/plan/usage.h"
#include "operator/plan/values.h"

namespace muster::controller {

// The ledgers of the jobs that this controller looks at (plan/job_ledger.h). Between two looks the
// time is measured by the monotonic clock; a job that another operator has looked at last goes on
// from its status, with the wall clock for the gap. Thread-safe.
class Ledgers {
 public:
  using Moment = std::chrono::steady_clock::time_point;

  // Sets the time from which on the sums of namespaces count, by the wall clock. Without it they
  // count each job since its creation. Call it before the first look.
  void count_from(api::Time begin);

  // Counts the time of a job until now, by the wall clock and the monotonic one, before the status
  // of `plan` is written. Sets status.goodput in it if the status is written anyway.
  void look(const api::TrainingJob& job, const plan::Observed& observed, plan::Plan& plan,
            api::Time now, Moment ticks);
  // The number of finished jobs that are kept, the newest ones.
  static constexpr size_t kMostFinished = 1000;

  // Counts the end of a job, once `status`, which says it, is written.
  void told(const api::TrainingJob& job, const api::JobStatus& status);

  // Forgets a job that is gone.
  void forget(const std::string& key, Moment ticks);

  struct Job {
    std::string name_space, name;
    plan::JobLedger ledger;
    bool finished = false;
  };
  // Calls `show` with each job that is not forgotten, one after the other.
  void each(const std::function<void(const Job& job)>& show) const;
  // Returns what all jobs have used since this process began, by namespace. It never becomes less.
  plan::UsageByNamespace by_namespace() const;
  // Returns the same until now, also of jobs that were looked at before: what they have used since
  // then may turn out to be another use.
  plan::UsageByNamespace by_namespace(Moment ticks) const;

 private:
  struct Entry {
    Job job;
    std::string uid;
    int gpus = 0;
    Moment counted;
    api::Time until;  // the wall clock's time of `counted`
  };
  void finish(const api::TrainingJob& job, const api::JobStatus& status) MUSTER_REQUIRES(mutex_);
  void close(const Entry& entry, double elapsed, const std::string& state) MUSTER_REQUIRES(mutex_);
  void keep_finished(const std::string& key) MUSTER_REQUIRES(mutex_);
  static Entry begin(const api::TrainingJob& job, api::Time now, Moment ticks);

  mutable Mutex mutex_;
  std::map<std::string, Entry> jobs_ MUSTER_GUARDED_BY(mutex_);
  std::deque<std::string> finished_ MUSTER_GUARDED_BY(mutex_);  // keys, the oldest first
  std::optional<api::Time> begin_ MUSTER_GUARDED_BY(mutex_);
  plan::UsageByNamespace by_namespace_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
