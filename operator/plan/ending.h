#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// When nothing lives and nothing is to be created: a decided job gets Succeeded or Failed, Finished
// and completionTime; one that should be suspended, Suspended.
void conclude(Draft& draft);

}  // namespace muster::plan
