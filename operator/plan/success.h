#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets SuccessCriteriaMet, once and irrevocably, when all deciding replicas have succeeded: the
// chief, worker 0, or each of the workers that the job wants now. A job without a deciding replica
// never succeeds. Does nothing while the job is suspended: the ending needs an evaluator and would
// run against the user's wish; successes are remembered and decide on resuming.
void decide_success(Draft& draft);

// Returns the time limit of the evaluator: after the deciding replicas it has
// evaluatorTimeoutSeconds to evaluate the final checkpoint.
Time evaluator_limit(const Draft& draft);

// Whether, in the ending, this evaluator still has a task: it has neither ended for good nor run
// out of time. False in any other stage.
bool evaluator_may_run(const Draft& draft, int index);

// Whether evaluator_may_run() and the final checkpoint has yet to be evaluated, so that it is worth
// starting an evaluator.
bool evaluator_may_start(const Draft& draft, int index);

// The chief tells members of a muster-trainer job that training is over, and they end by
// themselves; after so many seconds they are asked to end.
inline constexpr int64_t kFarewellSeconds = 5;

}  // namespace muster::plan
