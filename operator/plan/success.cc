#include "operator/plan/success.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/documents/json.h"

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

}  // namespace muster::plan
