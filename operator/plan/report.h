#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Accepted: whether replicas may be created (Valid, InvalidTemplate, NameConflict), or not
// known (Unknown).
void report_acceptance(Draft& draft);

// Running, Restarting, the cause and replicaStatuses, for the world as it will be once this plan is
// carried out: `active` are the replicas that live and stay, and those to be created; `ready` those
// that say so; `succeeded` and `failed` the indices that are done; `restarts` those that were
// counted.
void report(Draft& draft);

// progress: what was observed last; without the speed and the time to go once the job is suspended
// or decided.
void report_progress(Draft& draft);

// results: those that were observed last, as long as the success of the leading replica stands. A
// RestartJob makes that void.
void report_results(Draft& draft);

}  // namespace muster::plan
