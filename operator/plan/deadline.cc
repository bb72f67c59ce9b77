#include "operator/plan/deadline.h"

#include <string>

#include "operator/plan/failure.h"

namespace muster::plan {

void enforce_deadline(Draft& draft) {
  const auto seconds = draft.job.run_policy.active_deadline_seconds;
  if (draft.stage() != Stage::active || !seconds || !draft.status.start_time) return;
  const Time deadline = later_by(*draft.status.start_time, *seconds);
  if (draft.now < deadline) return draft.look_again_at(deadline);
  decide_failure(draft, "DeadlineExceeded",
                 "the job was active for activeDeadlineSeconds (" + std::to_string(*seconds) +
                     " s) without finishing");
}

void enforce_time_to_live(Draft& draft) {
  const auto seconds = draft.job.run_policy.ttl_seconds_after_finished;
  if (!seconds || !draft.status.completion_time) return;
  const Time end = later_by(*draft.status.completion_time, *seconds);
  draft.plan.remove_job = draft.now >= end;
  draft.look_again_at(end);
}

}  // namespace muster::plan
