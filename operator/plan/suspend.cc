#include "operator/plan/suspend.h"

namespace muster::plan {

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

api::Hold hold_of(const Draft& draft) {
  if (const api::Hold* hold = draft.queue_hold()) return *hold;
  return {"Suspended", "the job is suspended: no replica runs"};
}

}  // namespace muster::plan
