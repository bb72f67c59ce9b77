#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets SuccessCriteriaMet, once and irrevocably, when all deciding replicas have succeeded: the
// chief, worker 0, or each of the workers that the job wants now. With nobody to decide a job never
// succeeds. Not while the job is suspended: the ending needs an evaluator and would run against the
// user's wish; successes are remembered and decide on resuming.
void decide_success(Draft& draft);

// After the deciding replicas the evaluator has evaluatorTimeoutSeconds to evaluate the final
// checkpoint.
Time evaluator_limit(const Draft& draft);

// Whether, in the ending, this evaluator still has a task: it has neither ended for good nor run
// out of time. False in any other stage.
bool evaluator_may_run(const Draft& draft, int index);

// The same, and the final checkpoint has yet to be evaluated: worth starting one for.
bool evaluator_may_start(const Draft& draft, int index);

// Members of a muster-trainer job are told by the chief that training is over and end by
// themselves; they get this long for it before they are asked to.
inline constexpr int64_t kFarewellSeconds = 5;

}  // namespace muster::plan
