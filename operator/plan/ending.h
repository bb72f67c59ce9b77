#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets SuccessCriteriaMet, once and irrevocably, when all deciding replicas have succeeded: the
// chief, worker 0, or each of the workers that the job wants now. A job without a deciding replica
// never succeeds. Does nothing while the job is suspended, because succeeding may start an
// evaluator, against the user's wish. The successes stay in the records and decide the job when it
// is resumed.
void decide_success(Draft& draft);

// Returns the time limit of the evaluator: the evaluator has evaluatorTimeoutSeconds, after the
// deciding replicas have finished, to evaluate the final checkpoint.
Time evaluator_limit(const Draft& draft);

// Whether this evaluator still has work while the job is succeeding: it has neither ended for good
// nor run out of time. Returns false in any other stage.
bool evaluator_may_run(const Draft& draft, int index);

// Whether evaluator_may_run() and the final checkpoint has yet to be evaluated, so that it is worth
// starting an evaluator.
bool evaluator_may_start(const Draft& draft, int index);

// Whether an evaluator lives, or may be started (again) before its time is up.
bool evaluator_is_due(const Draft& draft);

// The chief of a muster-trainer job tells the members that training is over, and they end by
// themselves. Members that still run after this many seconds are asked to end.
inline constexpr int64_t kFarewellSeconds = 5;

// Sets FailureTarget DeadlineExceeded when the job was active for activeDeadlineSeconds since
// startTime. Suspended and decided jobs have no deadline.
void enforce_deadline(Draft& draft);

// Removes the job ttlSecondsAfterFinished after completionTime.
void enforce_time_to_live(Draft& draft);

// Acts when nothing lives and nothing is to be created: a decided job gets Succeeded or Failed,
// Finished and completionTime; a job that should be suspended gets Suspended.
void conclude(Draft& draft);

}  // namespace muster::plan
