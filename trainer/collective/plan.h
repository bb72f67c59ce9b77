#pragma once

#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

// Throws Invalid (kProtocol) for an impossible plan: without members or with more than
// GroupShape::kMostMembers, with fewer logical replicas than members or more than
// GroupShape::kMostReplicas, or with a state that no member provides. A member must call this first
// for each plan from the rendezvous.
void require_possible(const CollectivePlan& plan);

}  // namespace muster::collective
