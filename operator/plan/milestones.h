#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Writes the events of a job's good progress, for readers of its history: its replicas are started,
// and all of them are ready. Ends, restarts and suspensions are reported where they are decided.
void note_milestones(Draft& draft);

}  // namespace muster::plan
