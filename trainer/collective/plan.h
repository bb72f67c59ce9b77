#pragma once

#include "proto/muster/rendezvous.pb.h"

namespace muster::collective {

// Throws Invalid (kProtocol) for a plan by which no generation can begin: of no members or of more
// than GroupShape::kMostMembers, of fewer logical replicas than members or of more than
// GroupShape::kMostReplicas, or whose state none of its members brings. Whoever is told one by the
// rendezvous asks before anything else.
void require_possible(const CollectivePlan& plan);

}  // namespace muster::collective
