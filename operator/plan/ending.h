#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Acts when nothing lives and nothing is to be created: a decided job gets Succeeded or Failed,
// Finished and completionTime; a job that should be suspended gets Suspended.
void conclude(Draft& draft);

}  // namespace muster::plan
