#include "operator/kube/cluster/report_pace.h"

#include <algorithm>

namespace muster::kube {

namespace {

// Whether the records differ only in that the replica has ended and nothing starts in its place.
bool is_last_end(const api::ReplicaRecord& before, const api::ReplicaRecord& after, bool decided) {
  api::ReplicaRecord rest = after;
  rest.exit_code = before.exit_code;
  rest.succeeded = before.succeeded;
  rest.failed = before.failed;
  // After the decision only an evaluator gets a successor.
  if (decided && rest.role != api::Role::evaluator) {
    rest.attempt = before.attempt;
    rest.restarts_in_place = before.restarts_in_place;
    rest.replacing = before.replacing;
  }
  return rest == before && after != before;
}

// Removes from `after` the ends that decide nothing. Until these ends are written, the finalizers
// of their pods keep the pods in view.
void forget_last_ends(const api::JobStatus& before, api::JobStatus& after) {
  if (before.records.size() != after.records.size()) return;
  const bool decided = before.is_true("SuccessCriteriaMet") || before.is_true("FailureTarget");
  bool any = false;
  for (size_t i = 0; i < before.records.size(); ++i) {
    if (!is_last_end(before.records[i], after.records[i], decided)) continue;
    after.records[i] = before.records[i];
    any = true;
  }
  if (any) after.counted_uids = before.counted_uids;
}

}  // namespace

bool is_report(const api::JobStatus& before, const api::JobStatus& after) {
  api::JobStatus rest = after;
  forget_last_ends(before, rest);
  rest.progress = before.progress;
  rest.goodput = before.goodput;
  rest.cause = before.cause;
  rest.replica_statuses = before.replica_statuses;
  for (api::Condition& condition : rest.conditions) {
    const api::Condition* was = before.find(condition.type);
    if (was == nullptr || condition.status != was->status) continue;
    const bool is_queues_text = condition.type == "Suspended" && condition.reason == was->reason;
    if (condition.type == "Running" || is_queues_text) condition = *was;
  }
  return rest == before;
}

bool any_trains(const api::TrainingJob& job, const api::JobStatus& status) {
  const bool has_chief = job.replicas.contains(api::Role::chief);
  const auto counts =
      status.replica_statuses.find(has_chief ? api::Role::chief : api::Role::worker);
  return counts != status.replica_statuses.end() && counts->second.ready > 0;
}

bool is_start(const api::TrainingJob& job, const api::JobStatus& after) {
  if (job.status != api::JobStatus{} || job.run_policy.active_deadline_seconds) return false;
  const auto says_no_more = [](const api::Condition& condition) {
    return condition.status ? condition.type == "Accepted" : condition.type == "Running";
  };
  const auto is_new = [](const api::ReplicaRecord& record) {
    api::ReplicaRecord one;
    one.role = record.role;
    one.index = record.index;
    return record == one;
  };
  if (!std::ranges::all_of(after.conditions, says_no_more)) return false;
  if (!std::ranges::all_of(after.records, is_new)) return false;
  api::JobStatus rest = after;
  rest.observed_generation = 0;
  rest.start_time.reset();
  rest.conditions.clear();
  rest.replica_statuses.clear();
  rest.records.clear();
  rest.group.clear();
  rest.storage_folder.reset();
  if (rest.keys().empty()) rest.security.reset();
  rest.progress = job.status.progress;
  rest.goodput = job.status.goodput;
  return rest == job.status;
}

ReportPace::ReportPace(double per_second, std::chrono::milliseconds of_a_job)
    : between_(static_cast<int64_t>(1000 / per_second)), of_a_job_(of_a_job) {}

// The turns of waiting reports are already spaced. If another report was faster at a report's turn,
// the report gets the next possible time.
api::Time ReportPace::turn(const std::string& job_uid, api::Time now) {
  const MutexLock lock(mutex_);
  Job& job = jobs_[job_uid];
  if (!job.turn) {
    const api::Time after_others = std::max(next_, now) + between_ * waiting_;
    job.turn = std::max(after_others, job.last.value_or(now) + of_a_job_);
    ++waiting_;
  } else if (*job.turn <= now) {
    job.turn = std::max(*job.turn, next_);
  }
  if (*job.turn <= now) next_ = now + between_;
  return *job.turn;
}

void ReportPace::wrote(const std::string& job_uid, api::Time now) {
  const MutexLock lock(mutex_);
  Job& job = jobs_[job_uid];
  job.last = now;
  end_waiting(job);
}

void ReportPace::end_waiting(Job& job) {
  if (job.turn) --waiting_;
  job.turn.reset();
}

void ReportPace::forget(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  const auto found = jobs_.find(job_uid);
  if (found == jobs_.end()) return;
  end_waiting(found->second);
  jobs_.erase(found);
}

}  // namespace muster::kube
