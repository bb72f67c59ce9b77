#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// These functions handle a change of the number of replicas while the job runs. An elastic job
// continues with the workers it has, and so do the user's own programs with enableDynamicWorker.
// Other jobs restart all replicas together, because TF_CONFIG would name another group in old
// replicas than in new ones.

// Notes which group TF_CONFIG names. If the group has changed, writes an event and restarts the
// replicas that must be restarted. Restarts no replica if the job has not begun or is being
// resumed, or if it has `training`: with `training` such a change is allowed only while nothing
// runs.
void follow_scaling(Draft& draft);

// Marks each living worker whose index is not wanted any more as leaving
// (ReplicaRecord::replacing). A marked worker leaves even if the job is scaled again, and its end
// decides nothing and is not counted. If its index is wanted again, the next attempt is created
// after this end.
void let_go_scaled_away(Draft& draft);

// Whether the end of this replica has no meaning for the job, because scaling made the replica
// leave.
bool is_scaled_away(const Draft& draft, const ObservedReplica& replica);

// Whether the members that are ready are enough for the group to train: a chief, if the job has
// one, and minReplicas workers. False for a job that is not elastic. Precondition: the status has
// replica_statuses.
bool goes_on_with_fewer(const Draft& draft);

}  // namespace muster::plan
