#pragma once

#include "operator/plan/draft.h"

namespace muster::plan {

// Whether replicas of the role may be created. With startupPolicy InOrder, every replica of the
// roles before it must be ready (or have succeeded). Always true with order Any.
bool may_start(const Draft& draft, Role role);

}  // namespace muster::plan
