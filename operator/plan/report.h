#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Sets Accepted: whether replicas may be created (Valid, InvalidTemplate, NameConflict), or that
// this is not known (Unknown).
void report_acceptance(Draft& draft);

// Sets Running, Restarting, the cause and replicaStatuses, for the state after this plan is carried
// out: `active` counts the replicas that live and stay, and those to be created; `ready` those that
// report ready; `succeeded` and `failed` the indices that are done; `restarts` the restarts that
// were counted.
void report(Draft& draft);

// Sets progress to what was observed last; without the speed and the remaining time once the job is
// suspended or decided. Writes an event for a checkpoint that was asked for.
void report_progress(Draft& draft);

// Sets results to those observed last, as long as the success of the leading replica holds. A
// RestartJob makes it void.
void report_results(Draft& draft);

}  // namespace muster::plan
