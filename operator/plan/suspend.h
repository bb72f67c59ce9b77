#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Follows spec.suspend and the hold of a queue, unless the job is decided. Suspending: the
// condition Suspended is false with reason Suspending until no replica lives, then true
// (conclude_suspension()). Resuming, even before Suspended is true: raises the run, so that
// replicas of the old run leave, and resets startTime.
void follow_suspend(Draft& draft);

// Sets Suspended to true, for a job that should be suspended and has no replica any more. A queue
// may change its message while the job waits in it.
void conclude_suspension(Draft& draft);

}  // namespace muster::plan
