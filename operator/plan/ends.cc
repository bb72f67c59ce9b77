#include "operator/plan/ends.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "operator/plan/back_off.h"
#include "operator/plan/describe.h"
#include "operator/plan/failure.h"
#include "operator/plan/records.h"
#include "operator/plan/success.h"

namespace muster::plan {
namespace {

using api::FailureAction;
using api::ReplicaRecord;

// Alive, but only by name: restarted over and over by its host.
bool is_crash_looping(const ObservedReplica& replica) {
  return is_live(replica) && !replica.deleting && replica.reason == "CrashLoopBackOff";
}

std::vector<const ObservedReplica*> in_order_of_end(const Draft& draft) {
  std::vector<const ObservedReplica*> ended;
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (!is_live(replica) || is_crash_looping(replica)) ended.push_back(&replica);
  }
  auto key = [&](const ObservedReplica* replica) {
    return std::tuple(replica->finished.value_or(draft.now), replica->role, replica->index,
                      std::cref(replica->uid).get());
  };
  std::ranges::sort(ended, {}, key);
  return ended;
}

bool is_accounted_for(const Draft& draft, const ObservedReplica& replica) {
  const ReplicaRecord& record = draft.record(replica.role, replica.index);
  return draft.is_superseded(replica) || record.succeeded || record.failed;
}

// Nobody should run under this index now, or not from that run.
bool is_unwanted(const Draft& draft, const ObservedReplica& replica) {
  return draft.of_old_run(replica) || !draft.in_range(replica) ||
         (draft.job.suspend && replica.deleting);
}

void account_success(Draft& draft, const ObservedReplica& replica) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const bool void_by_restart = replica.run < draft.status.restart_run;
  const bool left_on_request =
      draft.job.training.is_null() && replica.deleting && is_unwanted(draft, replica);
  record.exit_code = 0;
  if (void_by_restart || left_on_request) {
    next_attempt(record);
  } else {
    record.succeeded = true;
  }
}

void restart_everybody(Draft& draft) {
  draft.status.restart_run = ++draft.status.run;
  for (ReplicaRecord& record : draft.status.records) {
    if (record.succeeded || record.failed) next_attempt(record);
  }
}

// Whether one more restart may be counted; counts it if so.
bool within_limit(Draft& draft, ReplicaRecord& record) {
  const bool own_limit = record.role == Role::evaluator;
  const int so_far = own_limit ? record.restarts : draft.status.restarts;
  if (so_far >= draft.job.run_policy.backoff_limit) return false;
  ++record.restarts;
  if (!own_limit) ++draft.status.restarts;
  return true;
}

std::string limit_used_up(const Draft& draft, const std::string& end) {
  const int limit = draft.job.run_policy.backoff_limit;
  const std::string used_up = limit == 0 ? "no restart is allowed"
                              : limit == 1
                                  ? "its one restart is used up"
                                  : "all " + std::to_string(limit) + " restarts are used up";
  return end + "; " + used_up + " (backoffLimit)";
}

void give_up(Draft& draft, ReplicaRecord& record, const std::string& reason,
             const std::string& message) {
  record.failed = true;
  if (record.role != Role::evaluator) return decide_failure(draft, reason, message);
  draft.warn("EvaluatorGivenUp", message + "; the job goes on without it");
}

void restart(Draft& draft, const ObservedReplica& replica, const Verdict& verdict,
             const std::string& end) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  delay_restart(record, replica, draft.now);
  if (is_live(replica)) {
    record.replacing = replica.uid;
  } else {
    next_attempt(record);
  }
  const bool everybody = verdict.action == FailureAction::restart_job;
  if (everybody) restart_everybody(draft);
  std::string message = end + (everybody ? "; the whole job restarts" : "; it restarts");
  if (verdict.counts && replica.role != Role::evaluator) {
    message += " (restart " + std::to_string(draft.status.restarts) + " of " +
               std::to_string(draft.job.run_policy.backoff_limit) + ")";
  }
  const std::string reason = everybody ? "JobRestart" : verdict.reason;
  if (!draft.restart_reason_and_message) draft.restart_reason_and_message = {reason, message};
  draft.warn(reason, message);
}

void judge_failure(Draft& draft, const ObservedReplica& replica) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const Verdict verdict = judge(draft.job, replica);
  const std::string end = describe_end(draft.job, replica);
  if (verdict.action == FailureAction::fail_job) {
    give_up(draft, record, verdict.reason, end);
  } else if (verdict.counts && !within_limit(draft, record)) {
    give_up(draft, record, "BackoffLimitExceeded", limit_used_up(draft, end));
  } else {
    restart(draft, replica, verdict, end);
  }
}

// The job is decided: a failure is remembered for show; the evaluator alone may try again.
void account_late_failure(Draft& draft, const ObservedReplica& replica) {
  if (replica.role == Role::evaluator && evaluator_may_run(draft, replica.index)) {
    return judge_failure(draft, replica);
  }
  if (!is_live(replica) && !replica.deleting) {
    draft.record(replica.role, replica.index).failed = true;
  }
}

void account_failure(Draft& draft, const ObservedReplica& replica) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const bool counted_before = record.replacing == replica.uid;
  if (is_live(replica) && (counted_before || is_unwanted(draft, replica))) return;
  record.exit_code = replica.exit_code;
  const Stage stage = draft.stage();
  const bool decided = stage == Stage::succeeding || stage == Stage::failing;
  if (counted_before) {
    next_attempt(record);
  } else if (decided) {
    account_late_failure(draft, replica);
  } else if (is_unwanted(draft, replica)) {
    next_attempt(record);
  } else if (!is_live(replica) || stage == Stage::active) {
    judge_failure(draft, replica);
  }
}

}  // namespace

void count_ends(Draft& draft) {
  const std::vector<const ObservedReplica*> ended = in_order_of_end(draft);
  for (const ObservedReplica* replica : ended) {
    if (replica->phase == Phase::succeeded && !is_accounted_for(draft, *replica)) {
      account_success(draft, *replica);
    }
  }
  decide_success(draft);
  for (const ObservedReplica* replica : ended) {
    if (replica->phase != Phase::succeeded && !is_accounted_for(draft, *replica)) {
      account_failure(draft, *replica);
    }
  }
}

}  // namespace muster::plan
