#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Events of what goes well, for those who read a job's story: that its replicas are started, and
// that all of them are ready. Ends, restarts and suspensions are told where they are decided.
void note_milestones(Draft& draft);

}  // namespace muster::plan
