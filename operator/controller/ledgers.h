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

  // Sets the time from which on the sums of namespaces count, by the wall clock, and until when
  // another operator has looked at all jobs, if one has. Without it the sums count each job since
  // its creation. Call it before the first look.
  void count_from(api::Time begin, std::optional<api::Time> looked_until = {});

  // Counts the time of a job until now, by the wall clock and the monotonic one, before the status
  // of `plan` is written. Sets status.goodput in it if the status is written anyway.
  void look(const api::TrainingJob& job, const plan::Observed& observed, plan::Plan& plan,
            api::Time now, Moment ticks);
  // Counts the time until now of the jobs that only the cluster shows: they were not looked at
  // because nothing has changed. Those whose process tells are counted when it does.
  void count_until(api::Time now, Moment ticks);
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
    bool told_by_process = false;
    Moment counted;
    api::Time until;  // the wall clock's time of `counted`
    // Seconds at the beginning that the sums of namespaces do not get: the leader before has
    // counted them, though the job's status may not have them.
    double counted_before = 0;
  };
  void finish(const api::TrainingJob& job, const api::JobStatus& status) MUSTER_REQUIRES(mutex_);
  void close(const Entry& entry, double elapsed, const std::string& state) MUSTER_REQUIRES(mutex_);
  void charge(Entry& entry, const TimeSpent& before) MUSTER_REQUIRES(mutex_);
  static plan::Usage pending(const Entry& entry, double elapsed);
  void keep_finished(const std::string& key) MUSTER_REQUIRES(mutex_);
  Entry begin(const api::TrainingJob& job, api::Time now, Moment ticks) MUSTER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Entry> jobs_ MUSTER_GUARDED_BY(mutex_);
  std::deque<std::string> finished_ MUSTER_GUARDED_BY(mutex_);  // keys, the oldest first
  std::optional<api::Time> begin_ MUSTER_GUARDED_BY(mutex_);
  std::optional<api::Time> looked_until_ MUSTER_GUARDED_BY(mutex_);
  plan::UsageByNamespace by_namespace_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
