#include "operator/plan/milestones.h"

#include <string>

namespace muster::plan {
namespace {

// Returns a text such as "5 replicas: ps 1, chief 1, worker 2, evaluator 1".
std::string describe_replicas(const Draft& draft) {
  std::string by_role;
  for (const auto& [role, spec] : draft.job.replicas) {
    if (spec.replicas == 0) continue;
    by_role += (by_role.empty() ? "" : ", ") + api::role_name(draft.job, role) + " " +
               std::to_string(spec.replicas);
  }
  const int all = api::replicas_of(draft.job);
  return std::to_string(all) + (all == 1 ? " replica: " : " replicas: ") + by_role;
}

}  // namespace

void note_milestones(Draft& draft) {
  const api::JobStatus& before = draft.job.status;
  if (draft.status.start_time && !before.start_time) {
    draft.note("Started", "the job is started with " + describe_replicas(draft));
  }
  const api::Condition* running = draft.status.find("Running");
  if (running != nullptr && running->status && !before.is_true("Running")) {
    draft.note("Running", running->message);
  }
}

}  // namespace muster::plan
