#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets FailureTarget DeadlineExceeded when the job was active for activeDeadlineSeconds since
// startTime. Suspended and decided jobs have no deadline.
void enforce_deadline(Draft& draft);

// Removes the job ttlSecondsAfterFinished after completionTime.
void enforce_time_to_live(Draft& draft);

}  // namespace muster::plan
