#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets Accepted: whether replicas may be created (Valid, InvalidTemplate, NameConflict), or
// Unknown.
void report_acceptance(Draft& draft);

// Sets Running, Restarting, the cause and replicaStatuses, for the state after this plan is carried
// out: `active` counts the replicas that live and stay, and those to be created; `ready` those that
// report ready; `succeeded` and `failed` the indices that are done; `restarts` the restarts that
// were counted. Writes an event when the job has started, and when all of its replicas are ready.
void report(Draft& draft);

// Sets progress to the last observed progress, without the speed and the remaining time once the
// job is suspended or decided. Writes an event for a requested checkpoint. Sets Stalled: whether a
// replica's work gives no sign of life (ReplicaHangs, or StorageHangs if it waits for a file
// system). A job that has never stalled does not have the condition.
void report_progress(Draft& draft);

// Sets results to the last observed results, as long as the success of the leading replica is
// valid. A RestartJob makes the success void.
void report_results(Draft& draft);

}  // namespace muster::plan
