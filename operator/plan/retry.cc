#include "operator/plan/retry.h"

#include <algorithm>
#include <initializer_list>

#include "operator/plan/records.h"
#include "operator/plan/restarts.h"

namespace muster::plan {
namespace {

// Returns the status without these conditions, with which the job begins a new run.
api::JobStatus begin_again(const api::TrainingJob& job,
                           std::initializer_list<const char*> conditions) {
  api::JobStatus status = job.status;
  std::erase_if(status.conditions, [&](const api::Condition& condition) {
    return std::ranges::find(conditions, condition.type) != conditions.end();
  });
  ++status.run;
  if (!job.training.is_null()) status.restart_run = status.run;  // all replicas are needed again
  status.restarts = 0;
  status.start_time.reset();
  status.completion_time.reset();
  status.final_checkpoint_time.reset();
  for (api::ReplicaRecord& record : status.records) {
    leave_round(record);
    if (record.succeeded && job.training.is_null()) continue;
    // A replica whose end was not seen may still live; its successor is created only after that
    // end.
    if (record.succeeded || record.failed) next_attempt(record);
    record.failures_in_row = 0;
    record.not_before = {};
    // The only limit of the evaluator is its own count.
    if (record.role == api::Role::evaluator) record.restarts = 0;
  }
  return status;
}

}  // namespace

api::JobStatus retry(const api::TrainingJob& job) {
  return begin_again(job, {"FailureTarget", "Failed", "Finished"});
}

bool asks_for_more(const api::TrainingJob& job) {
  const std::optional<api::TrainingLength>& before = job.status.trained_to;
  const std::optional<api::TrainingLength> now = api::length_of(job);
  if (!job.status.is_true("Succeeded") || !before || !now) return false;
  const auto more = [](const std::optional<int64_t>& than, const std::optional<int64_t>& length) {
    return than && length && *length > *than;
  };
  return more(before->epochs, now->epochs) || more(before->steps, now->steps);
}

bool stays_finished(const api::TrainingJob& job) {
  return job.status.is_true("Finished") && !asks_for_more(job);
}

std::string describe(const api::TrainingLength& length) {
  const int64_t count = length.epochs ? *length.epochs : length.steps.value_or(0);
  return std::to_string(count) + (length.epochs ? " epoch" : " step") + (count == 1 ? "" : "s");
}

api::JobStatus train_on(const api::TrainingJob& job) {
  api::JobStatus status = begin_again(job, {"SuccessCriteriaMet", "Succeeded", "Finished"});
  status.results = nullptr;
  status.trained_to.reset();
  return status;
}

}  // namespace muster::plan
