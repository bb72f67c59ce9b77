#pragma once

#include <chrono>
#include <map>
#include <string>

#include "common/threads/mutex.h"
#include "operator/api/training_job.h"

namespace muster::kube {

// Whether the change of a status is only a report, on which no action depends. Reports are:
// progress, the cause, counts of replicas, the Running condition's texts while its status does not
// change, and ends of replicas that decide nothing and get no successor. All other changes
// (decisions, counts that limit restarts, attempts that are to start) must be written before any
// action.
bool is_report(const api::JobStatus& before, const api::JobStatus& after);

// Whether the chief is ready or, without a chief, any worker; kubeflow.org/v1 calls this state
// Running. In a job that a TFJob owns, a status that changes this value is not put off.
bool any_trains(const api::TrainingJob& job, const api::JobStatus& status);

// Whether `after` would be the job's first status, and only says that the job is accepted and its
// replicas are being created. Such a status may wait like a report, so that many new jobs get their
// pods sooner: without it the next plan is the same, with the same folder. It may not wait if a
// deadline counts from its startTime, or if it names a key pair.
bool is_start(const api::TrainingJob& job, const api::JobStatus& after);

// Decides when reports may be written. Limits the reports per second of all jobs, and how often one
// job's status is written. The first report of a job waits a little, because the Running condition
// soon replaces it. Thread-safe, without a clock.
class ReportPace {
 public:
  explicit ReportPace(double per_second = 20,
                      std::chrono::milliseconds of_a_job = std::chrono::milliseconds(2000));

  // Returns a time not later than `now` if the report may be written now; otherwise the time to ask
  // again.
  api::Time turn(const std::string& job_uid, api::Time now);
  // Notes that a status of the job was written, a report or not: no report of the job waits for its
  // turn any more.
  void wrote(const std::string& job_uid, api::Time now);
  void forget(const std::string& job_uid);

 private:
  struct Job {
    std::optional<api::Time> turn;  // the turn of a waiting report
    std::optional<api::Time> last;  // the last write
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
