#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "operator/api/training_job.h"

namespace muster::kube {

// A status is a report where nothing follows from it: progress, counts of replicas, and what the
// Running condition says while it stays as it is. Everything else (decisions, counts that restarts
// are limited by, attempts) must be written before anything is done.
bool is_report(const api::JobStatus& before, const api::JobStatus& after);

// When reports may be written: so many a second over all jobs, and each job not too often, nor at
// once: what it reports first, replicas on their way up, is soon told by the Running condition.
// Thread-safe, without a clock.
class ReportPace {
 public:
  explicit ReportPace(double per_second = 20,
                      std::chrono::milliseconds of_a_job = std::chrono::milliseconds(2000));

  // Not later than `now`: write it now. Else the time to come again at, which is kept for this job.
  api::Time turn(const std::string& job_uid, api::Time now);
  void forget(const std::string& job_uid);

 private:
  struct Job {
    std::optional<api::Time> turn;
    std::optional<api::Time> last;
  };
  const std::chrono::milliseconds between_;
  const std::chrono::milliseconds of_a_job_;
  std::mutex mutex_;
  api::Time next_{};
  std::map<std::string, Job> jobs_;
};

}  // namespace muster::kube
