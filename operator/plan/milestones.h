#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Writes the events of a job's progress: its replicas are started, and all of them are ready. Ends,
// restarts and suspensions are reported by the functions that decide them.
void note_milestones(Draft& draft);

}  // namespace muster::plan
