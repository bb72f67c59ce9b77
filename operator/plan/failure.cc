#include "operator/plan/failure.h"

#include <algorithm>
#include <optional>

#include "common/exit_code.h"
#include "operator/api/disruption.h"

namespace muster::plan {
namespace {

using api::FailureAction;
using api::is_disruption;

bool contains(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != list.end();
}

bool restarts_never(const api::TrainingJob& job, const ObservedReplica& replica) {
  auto spec = job.replicas.find(replica.role);
  return spec != job.replicas.end() && spec->second.restart_policy == api::RestartPolicy::never;
}

std::optional<Verdict> left_when_asked(const api::TrainingJob& job,
                                       const ObservedReplica& replica) {
  if (!left_as_asked(replica)) return std::nullopt;
  if (restarts_never(job, replica)) return std::nullopt;
  const std::string reason = is_disruption(replica.reason) ? replica.reason : "ReplicaDeleted";
  return Verdict{FailureAction::restart_replica, false, reason};
}

bool matches(const api::FailureRule& rule, const ObservedReplica& replica) {
  if (!rule.roles.empty() && !contains(rule.roles, replica.role)) return false;
  if (!rule.on_reasons.empty() && !contains(rule.on_reasons, replica.reason)) return false;
  if (rule.on_exit_codes.empty()) return true;
  return replica.exit_code && contains(rule.on_exit_codes, *replica.exit_code);
}

std::optional<Verdict> by_rule(const api::TrainingJob& job, const ObservedReplica& replica) {
  if (left_as_asked(replica)) return std::nullopt;
  for (const api::FailureRule& rule : job.failure_rules) {
    if (!matches(rule, replica)) continue;
    const bool counts = rule.action != FailureAction::ignore && !is_disruption(replica.reason);
    return Verdict{rule.action, counts, "FailureRule"};
  }
  return std::nullopt;
}

std::optional<Verdict> by_restart_policy(const api::TrainingJob& job,
                                         const ObservedReplica& replica) {
  if (!restarts_never(job, replica)) return std::nullopt;
  return Verdict{FailureAction::fail_job, false, kRestartPolicyNever};
}

std::optional<Verdict> by_disruption(const api::TrainingJob&, const ObservedReplica& replica) {
  if (!is_disruption(replica.reason)) return std::nullopt;
  return Verdict{FailureAction::restart_replica, false, replica.reason};
}

std::optional<Verdict> by_exit_code(const api::TrainingJob& job, const ObservedReplica& replica) {
  if (job.training.is_null() || !replica.exit_code || !is_permanent(*replica.exit_code)) {
    return std::nullopt;
  }
  return Verdict{FailureAction::fail_job, false, "PermanentExitCode"};
}

}  // namespace

bool left_as_asked(const ObservedReplica& replica) {
  return left_on_request(replica) &&
         (replica.exit_code == kTerminated || !is_disruption(replica.reason));
}

Verdict judge(const api::TrainingJob& job, const ObservedReplica& replica) {
  Verdict verdict{FailureAction::restart_replica, true, "ReplicaFailed"};
  for (auto opinion : {left_when_asked, by_rule, by_restart_policy, by_disruption, by_exit_code}) {
    if (auto found = opinion(job, replica)) {
      verdict = *found;
      break;
    }
  }
  if (verdict.action == FailureAction::ignore) verdict.action = FailureAction::restart_replica;
  if (replica.role == Role::evaluator && verdict.action == FailureAction::restart_job) {
    verdict.action = FailureAction::restart_replica;
  }
  return verdict;
}

bool asks_for_another_node(const api::TrainingJob& job, const ObservedReplica& replica) {
  return !job.training.is_null() && replica.exit_code == kFaulty && !replica.node.empty();
}

void decide_failure(Draft& draft, const std::string& reason, const std::string& message) {
  draft.set("FailureTarget", true, reason, message);
  draft.warn(reason, message);
}

}  // namespace muster::plan
