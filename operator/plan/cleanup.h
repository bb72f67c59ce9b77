#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Whether an ended replica should be removed, by cleanPodPolicy:
// - Running: attempts that a later attempt has replaced are removed; the last attempt of each index
//   stays, with its logs;
// - All: as Running, and when the job has finished all replicas are removed;
// - None: no replica is removed, not even a replaced attempt.
//
// Replicas that live when a job is decided are stopped under any policy, so a finished job has no
// living replicas.
bool is_forgotten(const Draft& draft, const ObservedReplica& ended);

}  // namespace muster::plan
