#include "operator/plan/restarts.h"

#include "operator/plan/failure.h"
#include "operator/plan/records.h"

namespace muster::plan {

bool is_unwanted(const Draft& draft, const ObservedReplica& replica) {
  return draft.of_old_run(replica) || !draft.in_range(replica) ||
         (draft.job.suspend && replica.deleting);
}

int restarts_left(const Draft& draft, const api::ReplicaRecord& record) {
  const bool own_limit = record.role == Role::evaluator;
  return draft.job.run_policy.backoff_limit - (own_limit ? record.restarts : draft.status.restarts);
}

bool within_limit(Draft& draft, api::ReplicaRecord& record) {
  if (restarts_left(draft, record) <= 0) return false;
  ++record.restarts;
  if (record.role != Role::evaluator) ++draft.status.restarts;
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

void give_up(Draft& draft, api::ReplicaRecord& record, const std::string& reason,
             const std::string& message) {
  record.failed = true;
  if (record.role != Role::evaluator) return decide_failure(draft, reason, message);
  draft.warn("EvaluatorGivenUp", message + "; the job goes on without it");
}

void restart_everybody(Draft& draft) {
  draft.status.restart_run = ++draft.status.run;
  for (api::ReplicaRecord& record : draft.status.records) {
    if (record.succeeded || record.failed) next_attempt(record);
  }
}

}  // namespace muster::plan
