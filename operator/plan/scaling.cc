#include "operator/plan/scaling.h"

#include <map>
#include <string>
#include <utility>

#include "operator/plan/describe.h"
#include "operator/plan/restarts.h"

namespace muster::plan {
namespace {

using Group = std::map<Role, int>;

bool may_be_scaled(const Draft& draft, const ObservedReplica& replica) {
  return api::workers_may_change(draft.job) && replica.role == Role::worker;
}

Group group_of(const api::TrainingJob& job) {
  Group group;
  for (const auto& [role, spec] : job.replicas) {
    if (role != Role::evaluator && spec.replicas > 0) group[role] = spec.replicas;
  }
  return group;
}

int count_in(const Group& group, Role role) {
  const auto found = group.find(role);
  return found == group.end() ? 0 : found->second;
}

// Returns a text such as "worker from 2 to 3".
std::string describe_change(const Draft& draft, const Group& before, const Group& now) {
  std::string text;
  for (const Role role : api::kRoles) {
    const int from = count_in(before, role), to = count_in(now, role);
    if (from == to) continue;
    text += (text.empty() ? "" : ", ") + api::role_name(draft.job, role) + " from " +
            std::to_string(from) + " to " + std::to_string(to);
  }
  return text;
}

bool only_workers_change(Group before, Group now) {
  before.erase(Role::worker);
  now.erase(Role::worker);
  return before == now;
}

// Counts replicas that have ended well as ready, because they may end before the others do.
int ready_or_done(const Draft& draft, Role role) {
  const auto found = draft.status.replica_statuses.find(role);
  if (found == draft.status.replica_statuses.end()) return 0;
  return found->second.ready + found->second.succeeded;
}

}  // namespace

void follow_scaling(Draft& draft) {
  const Stage stage = draft.stage();
  if (stage != Stage::active && stage != Stage::suspending) return;
  const Group before = std::exchange(draft.status.group, group_of(draft.job));
  const Group& now = draft.status.group;
  const bool runs = draft.job.status.start_time && draft.status.run == draft.job.status.run;
  if (before.empty() || before == now || stage != Stage::active || !runs) return;
  const std::string scaled = "the job is scaled (" + describe_change(draft, before, now) + ")";
  if (api::workers_may_change(draft.job) && only_workers_change(before, now)) {
    return draft.note("Scaled", scaled + "; nobody is restarted");
  }
  if (!draft.job.training.is_null()) return;
  restart_everybody(draft);
  const std::string message = scaled +
                              "; all replicas restart, to have the same TF_CONFIG, which does "
                              "not count against backoffLimit";
  draft.restart_reason_and_message = {"Scaled", message};
  draft.note("Scaled", message);
}

void let_go_scaled_away(Draft& draft) {
  if (draft.stage() != Stage::active) return;
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (!may_be_scaled(draft, replica) || draft.in_range(replica) || !is_live(replica)) continue;
    api::ReplicaRecord& record = draft.record(replica.role, replica.index);
    if (draft.is_superseded(replica) || record.succeeded || record.failed) continue;
    if (!record.replacing.empty()) continue;
    record.replacing = replica.uid;
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
