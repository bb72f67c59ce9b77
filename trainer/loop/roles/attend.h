#pragma once

#include <memory>

#include "trainer/collective/formation.h"
#include "trainer/group/membership.h"
#include "trainer/group/peer_registry.h"
#include "trainer/group/rendezvous_client.h"
#include "trainer/loop/synchronizers/ps_synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// Returns what a member (first function) or a ps (second) says of itself when it joins the group.
Hello make_hello(const group::Membership& membership, const Assembly& assembly);
Hello make_hello(const group::Membership& membership, const Training& training);

// Returns what rank 0 expects of the replicas that join.
group::PeerRegistry::Expected expected_peers(const group::Membership& membership,
                                             const Assembly& assembly);

// Returns how a collective's generations are formed, with `devices` devices for each member.
collective::Formation::Setup formation_of(const group::Membership& membership, int devices);

// Returns where the GPUs of a collective's members may be linked.
collective::Formation::Link link_of(const group::Membership& membership,
                                    const spec::TrainingSpec& spec);

// Keeps NCCL to the loopback interface if GPUs are linked on one host only, or in this process
// alone, and the environment does not say which interface to use. To be called before there are
// other threads, which may read the environment.
void keep_links_on_host(const group::Membership& membership, const spec::TrainingSpec& spec);

// Returns the function that connects a member to its job's shards: through shared memory to shards
// on its host, if the member has such memory, else by gRPC, which sends floats as `wire`.
PsSynchronizer::Connect make_connect(const group::Membership& membership,
                                     const std::string& layout_fingerprint, spec::WireType wire);

}  // namespace muster::loop
