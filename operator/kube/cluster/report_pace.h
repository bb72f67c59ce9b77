#pragma once

#include <chrono>
#include <map>
#include <string>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Whether the change of a status is a report, on which no action depends: progress, the cause,
// counts of replicas, the Running condition's texts while it stays as it is, and ends of replicas
// that decide nothing and get no successor. Everything else (decisions, counts that restarts are
// limited by, attempts that are to start) must be written before any action.
bool is_report(const api::JobStatus& before, const api::JobStatus& after);

// Whether the chief is ready, or, where there is none, any worker: what kubeflow.org/v1 calls
// Running. For a job that a TFJob owns, a status in which this changes is not put off.
bool any_trains(const api::TrainingJob& job, const api::JobStatus& status);

// Whether `after` would be the job's first status, and says no more than that the job is accepted
// and its replicas are on their way. Without it the next plan is the same, with the same folder,
// and many new jobs get their pods sooner if this may wait as a report. It may not wait if a
// deadline counts from its startTime, or if it names a key pair.
bool is_start(const api::TrainingJob& job, const api::JobStatus& after);

// Decides when reports may be written: so many a second over all jobs, and each job not too often,
// nor at once: its first report (replicas starting up) is soon replaced by the Running condition.
// Thread-safe, without a clock.
class ReportPace {
 public:
  explicit ReportPace(double per_second = 20,
                      std::chrono::milliseconds of_a_job = std::chrono::milliseconds(2000));

  // Returns a time not later than `now` if the report may be written now, else the time to ask
  // again.
  api::Time turn(const std::string& job_uid, api::Time now);
  // Tells that a status of the job was written, whatever it said: nothing waits for its turn any
  // more.
  void wrote(const std::string& job_uid, api::Time now);
  void forget(const std::string& job_uid);

 private:
  struct Job {
    std::optional<api::Time> turn;  // it waits
    std::optional<api::Time> last;  // written
  };
  void end_waiting(Job& job) MUSTER_REQUIRES(mutex_);

  const std::chrono::milliseconds between_;
  const std::chrono::milliseconds of_a_job_;
  Mutex mutex_;
  api::Time next_ MUSTER_GUARDED_BY(mutex_){};  // earliest time of the next report
  int waiting_ MUSTER_GUARDED_BY(mutex_) = 0;   // jobs that have a turn
  std::map<std::string, Job> jobs_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
