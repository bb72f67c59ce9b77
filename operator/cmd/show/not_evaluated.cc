#include "operator/cmd/show/not_evaluated.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/documents/json.h"
#include "operator/plan/describe.h"

namespace muster::cmd {

namespace {

using plan::ObservedReplica;

const ObservedReplica* newest_evaluator(const std::vector<ObservedReplica>& replicas) {
  const ObservedReplica* newest = nullptr;
  for (const ObservedReplica& replica : replicas) {
    if (replica.role != api::Role::evaluator) continue;
    if (newest == nullptr || replica.attempt > newest->attempt) newest = &replica;
  }
  return newest;
}

std::string why_not(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas) {
  const ObservedReplica* evaluator = newest_evaluator(replicas);
  if (evaluator != nullptr && evaluator->phase == plan::Phase::failed && !evaluator->deleting) {
    return plan::describe_end(job, *evaluator);
  }
  if (!job.replicas.contains(api::Role::evaluator)) return "no evaluation was written";
  return fmt::format(
      "the evaluator had not done so {} s after the final checkpoint "
      "(runPolicy.evaluatorTimeoutSeconds)",
      job.run_policy.evaluator_timeout_seconds);
}

}  // namespace

Json not_evaluated(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas,
                   const Json& evaluation) {
  if (!job.status.is_true("Succeeded")) return nullptr;
  Json missing;
  for (const char* name : {"validation", "test"}) {
    if (!member(member(job.training, "data"), name).is_object()) continue;
    const Json& result = member(evaluation, name);
    const Json& error = member(result, "error");
    if (error.is_string()) {
      missing[name] = error;
    } else if (!result.is_object()) {
      missing[name] = why_not(job, replicas);
    }
  }
  return missing;
}

Json not_measured(const api::TrainingJob& job, const Json& evaluation) {
  if (!job.status.is_true("Succeeded")) return nullptr;
  Json unmeasured;
  for (const char* name : {"validation", "test"}) {
    const Json& result = member(evaluation, name);
    const bool evaluated = result.is_object() && !member(result, "error").is_string();
    const bool measured = std::any_of(result.begin(), result.end(), [](const Json& value) {
      return value.is_number() || value.is_null();
    });
    if (evaluated && !measured) unmeasured.push_back(name);
  }
  return unmeasured;
}

}  // namespace muster::cmd
