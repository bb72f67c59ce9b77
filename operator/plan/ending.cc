#include "operator/plan/ending.h"

#include <algorithm>

#include "operator/plan/success.h"
#include "operator/plan/suspend.h"

namespace muster::plan {
namespace {

// Whether, in the ending, an evaluator waits for its back-off.
bool evaluator_waits(const Draft& draft) {
  for (int index = 0; index < draft.desired(Role::evaluator); ++index) {
    if (evaluator_may_start(draft, index)) return true;
  }
  return false;
}

// Decides the condition Accepted if it is still Unknown: no further pod will be created to show
// whether the job can run.
void settle_acceptance(Draft& draft) {
  const api::Condition* accepted = draft.status.find("Accepted");
  if (accepted == nullptr || accepted->reason != "Unknown") return;
  const std::string why = accepted->message;
  const bool ran = std::ranges::any_of(draft.status.records, [](const api::ReplicaRecord& record) {
    return record.attempt > 0 || record.exit_code || record.succeeded;
  });
  if (ran) return draft.set("Accepted", true, "Valid", "the job could be run");
  draft.set("Accepted", false, "Refused", why);
}

void finish(Draft& draft, const char* type, const char* decided_by) {
  settle_acceptance(draft);
  const api::Condition target = *draft.status.find(decided_by);
  draft.set(type, true, target.reason, target.message);
  draft.set("Finished", true, target.reason, target.message);
  draft.status.completion_time = draft.now;
  if (draft.status.is_true("Succeeded")) draft.status.trained_to = api::length_of(draft.job);
  const std::string message =
      "the job has " + std::string(type[0] == 'F' ? "failed: " : "succeeded: ");
  if (type[0] == 'F') {
    draft.warn(type, message + target.message);
  } else {
    draft.note(type, message + target.message);
  }
}

// A queue may change its message while the job waits in it.
void conclude_suspension(Draft& draft) {
  const api::Condition* before = draft.status.find("Suspended");
  const api::Hold hold = hold_of(draft);
  const bool is_news = !before->status || before->reason != hold.reason;
  draft.set("Suspended", true, hold.reason, hold.message);
  if (is_news) draft.note(hold.reason, hold.message);
}

}  // namespace

void conclude(Draft& draft) {
  if (draft.any_live() || !draft.plan.create.empty()) return;
  const Stage stage = draft.stage();
  if (stage == Stage::succeeding && !evaluator_waits(draft)) {
    finish(draft, "Succeeded", "SuccessCriteriaMet");
  } else if (stage == Stage::failing) {
    finish(draft, "Failed", "FailureTarget");
  } else if (stage == Stage::suspending) {
    conclude_suspension(draft);
  }
}

}  // namespace muster::plan
