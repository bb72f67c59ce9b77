#include "operator/plan/in_place.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "operator/plan/describe.h"
#include "operator/plan/failure.h"
#include "operator/plan/restarts.h"

namespace muster::plan {
namespace {

using api::FailureAction;
using api::ReplicaRecord;

constexpr int kMostInPlace = 3;
constexpr const char* kInPlace = "RestartedInPlace";

bool names(const api::FailureRule& rule, Role role) {
  return rule.roles.empty() || std::ranges::find(rule.roles, role) != rule.roles.end();
}

std::vector<const ObservedReplica*> restarted_in_place(const Draft& draft) {
  std::vector<const ObservedReplica*> restarted;
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (replica.restarts > 0 && replica.phase != Phase::succeeded) restarted.push_back(&replica);
  }
  std::ranges::sort(restarted, {}, [](const ObservedReplica* replica) {
    return std::tuple(replica->role, replica->index, std::cref(replica->uid).get());
  });
  return restarted;
}

bool is_counted(const Draft& draft, const ObservedReplica& replica) {
  const ReplicaRecord& record = draft.record(replica.role, replica.index);
  return !draft.is_superseded(replica) && !record.failed && record.replacing != replica.uid &&
         !is_unwanted(draft, replica) && replica.restarts > record.restarts_in_place;
}

void restart_job(Draft& draft, const std::string& what) {
  restart_everybody(draft);
  const std::string message = what + "; the whole job restarts";
  if (!draft.restart_reason_and_message) draft.restart_reason_and_message = {"JobRestart", message};
  draft.warn("JobRestart", message);
}

void tell(Draft& draft, const ObservedReplica& replica, const std::string& what) {
  // A large group that crashes together gets only a few events.
  constexpr int kMostTold = 3;
  const auto told = std::ranges::count(draft.plan.events, kInPlace, &Event::reason);
  if (told < kMostTold) draft.warn(kInPlace, what);
  if (told == kMostTold) draft.warn(kInPlace, "and more replicas were restarted in place");
  // No other replica waits for a replica that is ready again.
  if (is_live(replica) && !replica.ready && !draft.restart_reason_and_message) {
    draft.restart_reason_and_message = {kInPlace, what};
  }
}

Verdict verdict_on(const Draft& draft, const ObservedReplica& replica) {
  if (is_live(replica)) return judge(draft.job, replica);
  return {FailureAction::restart_replica, true, "ReplicaFailed"};
}

void count(Draft& draft, const ObservedReplica& replica) {
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const int times = replica.restarts - record.restarts_in_place;
  record.restarts_in_place = replica.restarts;
  const std::string what = describe_in_place(draft.job, replica, times);
  const Verdict verdict = verdict_on(draft, replica);
  if (verdict.action == FailureAction::fail_job) {
    return give_up(draft, record, verdict.reason, what);
  }
  for (int i = 0; verdict.counts && i < times; ++i) {
    if (count_failure(draft, record, nullptr, kInPlace)) continue;
    return give_up(draft, record, "BackoffLimitExceeded", limit_used_up(draft, what));
  }
  if (verdict.action == FailureAction::restart_job) return restart_job(draft, what);
  tell(draft, replica, what);
}

}  // namespace

int restarts_in_place(const api::TrainingJob& job, Role role) {
  const auto spec = job.replicas.find(role);
  const bool never =
      spec != job.replicas.end() && spec->second.restart_policy == api::RestartPolicy::never;
  const bool ruled = std::ranges::any_of(
      job.failure_rules, [&](const api::FailureRule& rule) { return names(rule, role); });
  if (never || ruled) return 0;
  const int counted = role == Role::evaluator ? 0 : job.status.restarts;
  return std::clamp(job.run_policy.backoff_limit - counted, 0, kMostInPlace);
}

void count_restarts_in_place(Draft& draft) {
  for (const ObservedReplica* replica : restarted_in_place(draft)) {
    if (draft.stage() != Stage::active) return;
    if (is_counted(draft, *replica)) count(draft, *replica);
  }
}

void count_restarts_of_success(Draft& draft, const ObservedReplica& replica) {
  if (draft.stage() != Stage::active || !is_counted(draft, replica)) return;
  ReplicaRecord& record = draft.record(replica.role, replica.index);
  const int times = replica.restarts - record.restarts_in_place;
  record.restarts_in_place = replica.restarts;
  for (int i = 0; i < times && count_failure(draft, record, nullptr, kInPlace); ++i) {
  }
}

}  // namespace muster::plan
