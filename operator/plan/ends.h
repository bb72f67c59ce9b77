#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Accounts for every ended replica in view, each once, in the order of their ends: remembers
// successes, then looks whether they decide the job, then judges failures until one fails or
// restarts the job.
//
// The end of a current attempt always leaves a mark in its record: the next attempt, `succeeded` or
// `failed`; so no later view shows it as new again. Some ends lead to the next attempt without
// being judged, because the replica was not wanted any more: in an older run, in an index scaled
// away, or asked to leave by suspending. Once the job is decided only the evaluator is restarted.
//
// Exit 0 is a success, with two exceptions. First, a user's image that was asked to leave, by us,
// by somebody else or by a disruption, may answer SIGTERM with 0, so that this code proves nothing;
// muster-trainer ends with 143 then. Second, the end of a worker that an elastic job was scaled
// without says nothing of the job, whatever its code (scaling.h).
void count_ends(Draft& draft);

}  // namespace muster::plan
