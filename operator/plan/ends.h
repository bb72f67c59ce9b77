#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Accounts for every ended replica in view, each once, in the order of their ends: it records the
// successes, checks whether they decide the job, and then judges the failures until one of them
// fails or restarts the job.
//
// The end of a current attempt always leaves a mark in its record: the next attempt, `succeeded` or
// `failed`; so no later view shows it as new again. An end is not judged if the replica was not
// wanted any more, because it belongs to an older run, its index was scaled away, or suspending
// asked it to leave; such an end leads to the next attempt. Once the job is decided only the
// evaluator is restarted.
//
// Exit 0 is a success, with two exceptions. First, a user's program that was asked to leave (by
// Muster, by somebody else or by a disruption) may answer SIGTERM with exit code 0, which proves no
// success; muster-trainer ends with 143 in this case. Second, the end of a worker that was scaled
// away from an elastic job has no meaning for the job, whatever its exit code (scaling.h).
void count_ends(Draft& draft);

}  // namespace muster::plan
