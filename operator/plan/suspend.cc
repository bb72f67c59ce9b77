#include "operator/plan/suspend.h"

namespace muster::plan {

void follow_suspend(Draft& draft) {
  const api::Condition* suspended = draft.status.find("Suspended");
  const bool began = suspended && (suspended->status || suspended->reason == "Suspending");
  const Stage stage = draft.stage();
  if (stage == Stage::suspending && !began) {
    draft.set("Suspended", false, "Suspending", "the replicas are being stopped");
  } else if (stage == Stage::active && began) {
    draft.set("Suspended", false, "Resumed", "the job was resumed");
    ++draft.status.run;
    draft.status.start_time.reset();
    draft.note("Resumed", "the job was resumed");
  }
}

}  // namespace muster::plan
