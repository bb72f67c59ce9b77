#pragma once

#include <memory>

#include "trainer/collective/collective_formation.h"
#include "trainer/group/membership.h"
#include "trainer/group/peer_registry.h"
#include "trainer/group/rendezvous_client.h"
#include "trainer/loop/synchronizers/ps_synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// Return the Hello with which a member (first function) or a ps (second function) joins the group.
Hello make_hello(const group::Membership& membership, const Assembly& assembly);
Hello make_hello(const group::Membership& membership, const Training& training);

// Returns rank 0's expectations of the replicas that join.
group::PeerRegistry::Expected expected_peers(const group::Membership& membership,
                                             const Assembly& assembly);

// Returns how a collective's generations are formed, with `devices` devices for each member.
collective::CollectiveFormation::Setup formation_of(const group::Membership& membership,
                                                    int devices);

// Returns between which of a collective's members GPUs may be linked.
collective::CollectiveFormation::Link link_of(const group::Membership& membership,
                                              const spec::TrainingSpec& spec);

// Limits NCCL to the loopback interface if GPUs are linked only on one host or within this process,
// unless the environment says which interface to use. Call this before other threads exist, because
// they may read the environment.
void keep_links_on_host(const group::Membership& membership, const spec::TrainingSpec& spec);

// Returns the function that connects a member to its job's shards: through shared memory to shards
// on its host, if the member has such memory; otherwise by gRPC, which sends floats as `wire`.
PsSynchronizer::Connect make_connect(const group::Membership& membership,
                                     const std::string& layout_fingerprint, spec::WireType wire);

}  // namespace muster::loop
