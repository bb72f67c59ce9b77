#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Follows spec.suspend and the hold of a queue, unless the job is decided. Suspending: the
// condition Suspended is false with reason Suspending until no replica lives, then true
// (conclude(), ending.h). Resuming, even before Suspended is true: raises the run, so that replicas
// of the old run leave, and resets startTime.
void follow_suspend(Draft& draft);

// Returns the reason and message of the condition Suspended for a job that has no running replicas
// because a user has suspended it or a queue holds it.
api::Hold hold_of(const Draft& draft);

}  // namespace muster::plan
