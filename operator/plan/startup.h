#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// startupPolicy InOrder: whether every replica of the roles before this one is ready (or has
// succeeded), so that this one's may be created. Always true with order Any.
bool may_start(const Draft& draft, Role role);

}  // namespace muster::plan
