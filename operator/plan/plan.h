#pragma once

#include "operator/plan/values.h"

namespace muster::plan {

// Returns what to do next. Pure: no I/O, no clock, no randomness. A second plan is empty: once the
// status is written, the replicas of `create` are in view as pending and those of `remove` as
// deleting, the next plan changes nothing. counted_uids of the status lists each ended replica in
// view: the cluster may release these replicas (their finalizer or folder). `look_again` is the
// earliest time at which the same job and view give another plan.
Plan plan(const api::TrainingJob& job, const Observed& observed, Time now);

}  // namespace muster::plan
