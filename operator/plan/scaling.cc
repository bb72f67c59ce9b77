#include "operator/plan/scaling.h"

#include <string>

#include "operator/plan/describe.h"

namespace muster::plan {
namespace {

bool may_be_scaled(const Draft& draft, const ObservedReplica& replica) {
  return draft.job.elastic && replica.role == Role::worker;
}

// Those that have ended well count as ready: others may yet have to end.
int ready_or_done(const Draft& draft, Role role) {
  const auto found = draft.status.replica_statuses.find(role);
  if (found == draft.status.replica_statuses.end()) return 0;
  return found->second.ready + found->second.succeeded;
}

}  // namespace

void let_go_scaled_away(Draft& draft) {
  if (draft.stage() != Stage::active) return;
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (!may_be_scaled(draft, replica) || draft.in_range(replica) || !is_live(replica)) continue;
    api::ReplicaRecord& record = draft.record(replica.role, replica.index);
    if (draft.is_superseded(replica) || record.succeeded || record.failed) continue;
    if (!record.replacing.empty()) continue;
    record.replacing = replica.uid;
    const int workers = draft.desired(Role::worker);
    draft.note("ScaledDown", describe(draft.job, replica.role, replica.index) +
                                 " leaves: the job is scaled to " + std::to_string(workers) +
                                 (workers == 1 ? " worker" : " workers"));
  }
}

bool is_scaled_away(const Draft& draft, const ObservedReplica& replica) {
  if (!may_be_scaled(draft, replica)) return false;
  return !draft.in_range(replica) ||
         draft.record(replica.role, replica.index).replacing == replica.uid;
}

bool goes_on_with_fewer(const Draft& draft) {
  if (!draft.job.elastic) return false;
  return ready_or_done(draft, Role::chief) >= draft.desired(Role::chief) &&
         ready_or_done(draft, Role::worker) >= draft.job.elastic->min_replicas;
}

}  // namespace muster::plan
