#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Whether an ended replica should go from view, by cleanPodPolicy:
// - Running: attempts that a later one has replaced go; the last one of each index stays, with its
//   logs;
// - All: the same, and when the job has finished everything goes;
// - None: nothing goes, replaced attempts stay too.
//
// Replicas that live when a job is decided are stopped under any policy: a finished job has none.
bool is_forgotten(const Draft& draft, const ObservedReplica& ended);

}  // namespace muster::plan
