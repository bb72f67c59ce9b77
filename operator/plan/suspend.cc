#include "operator/plan/suspend.h"

namespace muster::plan {
namespace {

// Returns the reason and message of the condition Suspended for a job that has no running replicas
// because a user has suspended it or a queue holds it.
api::Hold hold_of(const Draft& draft) {
  if (const api::Hold* hold = draft.queue_hold()) return *hold;
  return {"Suspended", "the job is suspended: no replica runs"};
}

}  // namespace

void follow_suspend(Draft& draft) {
  const api::Condition* suspended = draft.status.find("Suspended");
  const bool began = suspended && (suspended->status || suspended->reason == "Suspending");
  const Stage stage = draft.stage();
  if (stage == Stage::suspending && !began) {
    const api::Hold* hold = draft.queue_hold();
    draft.set("Suspended", false, "Suspending",
              "the replicas are being stopped" + (hold != nullptr ? ": " + hold->message : ""));
  } else if (stage == Stage::active && began) {
    const bool by_user = suspended->reason == "Suspended" || suspended->reason == "Suspending";
    const std::string reason = by_user ? "Resumed" : "Admitted";
    const std::string message = by_user ? "the job was resumed" : "its queue lets the job run";
    draft.set("Suspended", false, reason, message);
    ++draft.status.run;
    draft.status.start_time.reset();
    draft.note(reason, message);
  }
}

void conclude_suspension(Draft& draft) {
  const api::Condition* before = draft.status.find("Suspended");
  const api::Hold hold = hold_of(draft);
  const bool is_news = !before->status || before->reason != hold.reason;
  draft.set("Suspended", true, hold.reason, hold.message);
  if (is_news) draft.note(hold.reason, hold.message);
}

}  // namespace muster::plan
