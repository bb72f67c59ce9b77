#pragma once

#include <memory>

#include "trainer/collective/formation.h"
#include "trainer/group/membership.h"
#include "trainer/group/peer_registry.h"
#include "trainer/group/rendezvous_client.h"
#include "trainer/loop/synchronizers/ps_synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// What a member says of itself when it joins its group; what a ps does.
Hello make_hello(const group::Membership& membership, const Assembly& assembly);
Hello make_hello(const group::Membership& membership, const Training& training);

// What rank 0 expects of those who join.
group::PeerRegistry::Expected expected_peers(const group::Membership& membership,
                                             const Assembly& assembly);

// How a collective's generations are formed, of members with so many devices each.
collective::Formation::Setup formation_of(const group::Membership& membership, int devices);

// How a member reaches the shards of its job: by memory shared with those of its host, where it has
// any to share, else by gRPC, whose floats are sent as `wire`.
PsSynchronizer::Connect make_connect(const group::Membership& membership,
                                     const std::string& layout_fingerprint, spec::WireType wire);

}  // namespace muster::loop
