#pragma once

#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

// Throws Invalid (kProtocol) for a plan with which no generation can begin: one without members or
// with more than GroupShape::kMostMembers, with fewer logical replicas than members or more than
// GroupShape::kMostReplicas, or one whose state no member brings. A member that gets a plan from
// the rendezvous calls this before anything else.
void require_possible(const CollectivePlan& plan);

}  // namespace muster::collective
