#pragma once

#include "operator/plan/values.h"

namespace muster::plan {

// Returns what to do next. Pure: no I/O, no clock, no randomness. The plan of its own result is
// empty: with the status written, `create` in view as pending and `remove` as deleting, the next
// plan changes nothing. Its status lists in counted_uids each ended replica in view: the cluster
// may let go of those (finalizer, folder). `look_again` is the earliest time at which the same job
// and view give another plan.
Plan plan(const api::TrainingJob& job, const Observed& observed, Time now);

}  // namespace muster::plan
