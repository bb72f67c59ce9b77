#include "operator/plan/ending.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/documents/json.h"
#include "operator/plan/failure.h"
#include "operator/plan/suspend.h"

namespace muster::plan {
namespace {

struct Criterion {
  std::vector<std::pair<Role, int>> deciding;
  const char* reason;
  std::string message;
};

Criterion criterion_of(const Draft& draft) {
  const int workers = draft.desired(Role::worker);
  switch (draft.job.decided_by) {
    case api::DecidedBy::chief:
      if (draft.desired(Role::chief) == 0) return {};
      return {{{Role::chief, 0}},
              "ChiefSucceeded",
              api::role_name(draft.job, Role::chief) + "-0 succeeded"};
    case api::DecidedBy::worker_zero:
      if (workers == 0) return {};
      return {{{Role::worker, 0}}, "WorkerZeroSucceeded", "worker-0 succeeded"};
    case api::DecidedBy::all_workers:
      break;
  }
  Criterion all{{},
                "AllWorkersSucceeded",
                workers == 1 ? "worker-0 succeeded"
                             : "all " + std::to_string(workers) + " workers succeeded"};
  for (int index = 0; index < workers; ++index) all.deciding.emplace_back(Role::worker, index);
  return all;
}

// Decides the condition Accepted if it is still Unknown: no further pod will be created to show
// whether the job can run.
void decide_acceptance(Draft& draft) {
  const api::Condition* accepted = draft.status.find("Accepted");
  if (accepted == nullptr || accepted->reason != "Unknown") return;
  const std::string why = accepted->message;
  const bool ran = std::ranges::any_of(draft.status.records, [](const api::ReplicaRecord& record) {
    return record.attempt > 0 || record.exit_code || record.succeeded;
  });
  if (ran) return draft.set("Accepted", true, "Valid", "the job could be run");
  draft.set("Accepted", false, "Refused", why);
}

void finish(Draft& draft, const char* type, const char* decided_by) {
  decide_acceptance(draft);
  const api::Condition target = *draft.status.find(decided_by);
  draft.set(type, true, target.reason, target.message);
  draft.set("Finished", true, target.reason, target.message);
  draft.status.completion_time = draft.now;
  if (draft.status.is_true("Succeeded")) draft.status.trained_to = api::length_of(draft.job);
  const std::string message =
      "the job has " + std::string(type[0] == 'F' ? "failed: " : "succeeded: ");
  if (type[0] == 'F') {
    draft.warn(type, message + target.message);
  } else {
    draft.note(type, message + target.message);
  }
}

}  // namespace

void decide_success(Draft& draft) {
  if (draft.stage() != Stage::active) return;
  const Criterion criterion = criterion_of(draft);
  const bool met = std::ranges::all_of(criterion.deciding, [&](const auto& replica) {
    return draft.record(replica.first, replica.second).succeeded;
  });
  if (!met || criterion.deciding.empty()) return;
  const bool trained_before = bool_or(draft.observed.results, "alreadyFinished", false);
  const std::string reason = trained_before ? "AlreadyFinished" : criterion.reason;
  const std::string message =
      trained_before ? criterion.message + ": another job had finished this training in its folder"
                     : criterion.message;
  draft.set("SuccessCriteriaMet", true, reason, message);
  draft.status.final_checkpoint_time = draft.now;
  draft.note(reason, message);
}

Time evaluator_limit(const Draft& draft) {
  return later_by(draft.status.final_checkpoint_time.value_or(draft.now),
                  draft.job.run_policy.evaluator_timeout_seconds);
}

bool evaluator_may_run(const Draft& draft, int index) {
  if (draft.stage() != Stage::succeeding) return false;
  if (index >= draft.desired(Role::evaluator) || draft.now >= evaluator_limit(draft)) return false;
  const api::ReplicaRecord& record = draft.record(Role::evaluator, index);
  return !record.succeeded && !record.failed;
}

bool evaluator_may_start(const Draft& draft, int index) {
  return !draft.observed.final_checkpoint_evaluated && evaluator_may_run(draft, index);
}

bool evaluator_is_due(const Draft& draft) {
  for (int index = 0; index < draft.desired(Role::evaluator); ++index) {
    if (evaluator_may_start(draft, index)) return true;
  }
  return std::ranges::any_of(draft.observed.replicas, [](const ObservedReplica& replica) {
    return is_live(replica) && replica.role == Role::evaluator;
  });
}

void enforce_deadline(Draft& draft) {
  const auto seconds = draft.job.run_policy.active_deadline_seconds;
  if (draft.stage() != Stage::active || !seconds || !draft.status.start_time) return;
  const Time deadline = later_by(*draft.status.start_time, *seconds);
  if (draft.now < deadline) return draft.look_again_at(deadline);
  decide_failure(draft, "DeadlineExceeded",
                 "the job was active for activeDeadlineSeconds (" + std::to_string(*seconds) +
                     " s) without finishing");
}

void enforce_time_to_live(Draft& draft) {
  const auto seconds = draft.job.run_policy.ttl_seconds_after_finished;
  if (!seconds || !draft.status.completion_time) return;
  const Time end = later_by(*draft.status.completion_time, *seconds);
  draft.plan.remove_job = draft.now >= end;
  draft.look_again_at(end);
}

void conclude(Draft& draft) {
  if (draft.any_live() || !draft.plan.create.empty()) return;
  const Stage stage = draft.stage();
  if (stage == Stage::succeeding && !evaluator_is_due(draft)) {
    finish(draft, "Succeeded", "SuccessCriteriaMet");
  } else if (stage == Stage::failing) {
    finish(draft, "Failed", "FailureTarget");
  } else if (stage == Stage::suspending) {
    conclude_suspension(draft);
  }
}

}  // namespace muster::plan
