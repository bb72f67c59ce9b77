#include "operator/plan/ends.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "operator/plan/describe.h"
#include "operator/plan/ending.h"
#include "operator/plan/failure.h"
#include "operator/plan/in_place.h"
#include "operator/plan/records.h"
#include "operator/plan/restarts.h"
#include "operator/plan/scaling.h"

namespace muster::plan {
namespace {

using api::FailureAction;
using api::ReplicaRecord;

// Whether the replica only seems to live: its host restarts it over and over.
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

// Whether a user's own program was asked to leave although it should continue: its exit code 0 is
// then judged as a failure.
bool is_cut_short(const Draft& draft, const ObservedReplica& replica) {
  return draft.job.training.is_null() && left_on_request(replica) && !is_unwanted(draft, replica) &&
         !is_scaled_away(draft, replica);
}

void account_success(Draft& draft, const ObservedReplica& replica) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const bool void_by_restart = replica.run < draft.status.restart_run;
  const bool proves_nothing =
      draft.job.training.is_null() && left_on_request(replica) && is_unwanted(draft, replica);
  record.exit_code = 0;
  count_restarts_of_success(draft, replica);
  if (void_by_restart || proves_nothing || is_scaled_away(draft, replica)) {
    next_attempt(record);
  } else {
    record.succeeded = true;
  }
}

// Forgets the node that was noted first if there are too many nodes: its GPU may have been
// repaired.
void avoid_node(ReplicaRecord& record, const std::string& node) {
  constexpr size_t kMost = 4;
  std::erase(record.avoided_nodes, node);
  record.avoided_nodes.push_back(node);
  if (record.avoided_nodes.size() > kMost) record.avoided_nodes.erase(record.avoided_nodes.begin());
}

std::string reason_of(const Verdict& verdict) {
  return verdict.action == FailureAction::restart_job ? "JobRestart" : verdict.reason;
}

void restart(Draft& draft, const ObservedReplica& replica, const Verdict& verdict,
             const std::string& end) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const bool elsewhere = asks_for_another_node(draft.job, replica);
  if (elsewhere) avoid_node(record, replica.node);
  delay_restart(record, replica, draft.now);
  if (is_live(replica)) {
    record.replacing = replica.uid;
  } else {
    next_attempt(record);
  }
  const bool everybody = verdict.action == FailureAction::restart_job;
  if (everybody) restart_everybody(draft);
  std::string message = end + (everybody ? "; the whole job restarts" : "; it restarts");
  if (elsewhere) message += ", on another node than " + replica.node + " if there is one";
  if (left_as_asked(replica)) message += ", which does not count against backoffLimit";
  if (verdict.counts && replica.role != Role::evaluator) {
    message += " (restart " + std::to_string(draft.status.restarts) + " of " +
               std::to_string(draft.job.run_policy.backoff_limit) + ")";
  }
  const std::string reason = reason_of(verdict);
  if (!draft.restart_reason_and_message) draft.restart_reason_and_message = {reason, message};
  draft.warn(reason, message);
}

// Returns why the replica is restarted, as the numbers of restarts name it.
std::string counted_reason(const Verdict& verdict, const ObservedReplica& replica) {
  const bool is_general = verdict.reason == "ReplicaFailed";
  return is_general && replica.reason == "OOMKilled" ? replica.reason : reason_of(verdict);
}

void judge_failure(Draft& draft, const ObservedReplica& replica) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const Verdict verdict = judge(draft.job, replica);
  const std::string end = describe_end(draft.job, replica);
  if (verdict.action == FailureAction::fail_job) {
    give_up(draft, record, verdict.reason, end);
  } else if (verdict.counts &&
             !count_failure(draft, record, &replica, counted_reason(verdict, replica))) {
    give_up(draft, record, "BackoffLimitExceeded", limit_used_up(draft, end));
  } else {
    restart(draft, replica, verdict, end);
  }
}

// Accounts for the end of a replica after the job was decided: the end is only recorded, and only
// the evaluator may run again. A replica that left on request also uses up its attempt number, in
// case the job continues later (retry.h).
void account_late_failure(Draft& draft, const ObservedReplica& replica) {
  if (replica.role == Role::evaluator && evaluator_may_run(draft, replica.index)) {
    return judge_failure(draft, replica);
  }
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  if (replica.phase == Phase::succeeded) {
    record.succeeded = true;
  } else if (left_on_request(replica)) {
    next_attempt(record);
  } else if (!is_live(replica)) {
    record.failed = true;
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

// Fails a job that would wait for ever: without a chief, workers decide it, and all have ended.
void fail_without_workers(Draft& draft) {
  const int workers = draft.desired(Role::worker);
  if (draft.stage() != Stage::active || draft.job.decided_by == api::DecidedBy::chief ||
      workers == 0)
    return;
  for (int index = 0; index < workers; ++index) {
    const ReplicaRecord& record = draft.record(Role::worker, index);
    if (!record.succeeded && !record.failed) return;
  }
  decide_failure(draft, "NoWorkerLeft",
                 "all workers have ended, and one that decides the job has not succeeded");
}

}  // namespace

void count_ends(Draft& draft) {
  std::vector<const ObservedReplica*> ended = in_order_of_end(draft);
  const auto is_success = [&](const ObservedReplica* replica) {
    return replica->phase == Phase::succeeded && !is_cut_short(draft, *replica);
  };
  const auto failures = std::stable_partition(ended.begin(), ended.end(), is_success);
  std::for_each(ended.begin(), failures, [&](const ObservedReplica* replica) {
    if (!is_accounted_for(draft, *replica)) account_success(draft, *replica);
  });
  decide_success(draft);
  count_restarts_in_place(draft);
  std::for_each(failures, ended.end(), [&](const ObservedReplica* replica) {
    if (!is_accounted_for(draft, *replica)) account_failure(draft, *replica);
  });
  fail_without_workers(draft);
}

}  // namespace muster::plan
