#include "operator/kube/report_pace.h"

#include <algorithm>

namespace muster::kube {

bool is_report(const api::JobStatus& before, const api::JobStatus& after) {
  api::JobStatus rest = after;
  rest.progress = before.progress;
  rest.replica_statuses = before.replica_statuses;
  const api::Condition* was = before.find("Running");
  for (api::Condition& condition : rest.conditions) {
    if (condition.type != "Running" || was == nullptr) continue;
    if (condition.status == was->status) condition = *was;
  }
  return rest == before;
}

ReportPace::ReportPace(double per_second, std::chrono::milliseconds of_a_job)
    : between_(static_cast<int64_t>(1000 / per_second)), of_a_job_(of_a_job) {}

api::Time ReportPace::turn(const std::string& job_uid, api::Time now) {
  const std::lock_guard lock(mutex_);
  Job& job = jobs_[job_uid];
  if (!job.turn) {
    next_ = std::max(next_, now);
    job.turn = std::max(next_, job.last.value_or(now) + of_a_job_);
    next_ += between_;
  }
  const api::Time turn = *job.turn;
  if (turn <= now) {
    job.turn.reset();
    job.last = now;
  }
  return turn;
}

void ReportPace::forget(const std::string& job_uid) {
  const std::lock_guard lock(mutex_);
  jobs_.erase(job_uid);
}

}  // namespace muster::kube
