#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Follows spec.suspend and the hold of a queue, unless the job is decided. Suspending: condition
// Suspended is false with reason Suspending until nothing lives any more, then true (conclude(),
// ending.h). Resuming, also before that: raises the run, so that replicas that still live from
// before leave, and resets startTime.
void follow_suspend(Draft& draft);

// Returns the reason and message of the condition Suspended of a job none of whose replicas runs
// because somebody has suspended it or a queue holds it.
api::Hold hold_of(const Draft& draft);

}  // namespace muster::plan
