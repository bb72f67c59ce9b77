#include "trainer/loop/roles/strategy.h"

#include "trainer/loop/roles/attend.h"
#include "trainer/loop/synchronizers/ps_synchronizer.h"

namespace muster::loop {

namespace {

std::unique_ptr<Synchronizer> make_collective(const MemberSetup& member) {
  CollectiveSynchronizer::Setup setup;
  setup.incarnation = member.incarnation;
  setup.storage = member.membership.storage;
  setup.host = member.membership.reachable_host();
  setup.ports = member.membership.peer_ports;
  setup.identity = member.membership.identity;
  setup.finished_without_us = member.finished_without_us;
  return std::make_unique<CollectiveSynchronizer>(member.assembly, member.client, member.report,
                                                  setup);
}

std::unique_ptr<Synchronizer> make_ps(const MemberSetup& member) {
  const group::Membership& membership = member.membership;
  PsSynchronizer::Setup setup;
  setup.rank = membership.rank();
  setup.members = membership.members();
  setup.shards = membership.shards();
  setup.connect = make_connect(membership, member.assembly.engine->layout().fingerprint(),
                               member.assembly.spec().wire);
  setup.report = &member.report;
  setup.finished_without_us = member.finished_without_us;
  return std::make_unique<PsSynchronizer>(member.assembly, member.client, setup);
}

}  // namespace

std::unique_ptr<LedGroup> make_group(const group::Membership& membership, Assembly& assembly,
                                     metrics::Reporter& reporter,
                                     std::unique_ptr<checkpoint::Store> store,
                                     std::stop_token stop) {
  const auto make = membership.collective() ? make_collective_group : make_ps_group;
  return make(membership, assembly, reporter, std::move(store), std::move(stop));
}

std::unique_ptr<Synchronizer> make_synchronizer(const MemberSetup& setup) {
  return setup.membership.collective() ? make_collective(setup) : make_ps(setup);
}

}  // namespace muster::loop
