#pragma once

#include <cstdint>

#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

// Throws Invalid (kProtocol) for an impossible plan: without members or with more than
// GroupShape::kMostMembers, with fewer logical replicas than members or more than
// GroupShape::kMostReplicas, or with a state that no member provides. A member must call this first
// for each plan from the rendezvous.
void require_possible(const CollectivePlan& plan);

// Returns the place of the member with this incarnation; -1: it has none.
int place_of(const CollectivePlan& plan, uint64_t incarnation);

// Whether the member at `place` brings the generation's first state or has it already; the others
// receive it.
bool holds_state(const CollectivePlan& plan, int place);

}  // namespace muster::collective
