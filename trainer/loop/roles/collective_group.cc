#include "trainer/collective/collective_coordinator.h"
#include "trainer/loop/roles/led_group.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"

namespace muster::loop {

namespace {

// The members are declared in the order in which they must be made.
class CollectiveGroup : public LedGroup {
 public:
  CollectiveGroup(const group::Membership& membership, Assembly& assembly,
                  metrics::Reporter& reporter, std::unique_ptr<checkpoint::Store> store,
                  std::stop_token stop)
      : LedGroup(membership, assembly),
        hello_(make_hello(membership, assembly)),
        leader_(
            membership, assembly, reporter, std::move(store),
            [this](uint64_t) { count_checkpoint(); }, stop),
        coordinator_(server(), *leader_.store(), setup(membership, assembly)),
        client_(server().local_channel(), "ourselves", hello_,
                [this](PeerMessage& message) { report_.fill(message); }),
        synchronizer_(assembly, client_, report_, synchronizer_setup(membership, reporter)) {
    leader_.recorder().also_report([this] { return synchronizer_.metrics(); });
  }

  Leader& leader() override { return leader_; }
  group::Coordinator& coordinator() override { return coordinator_; }
  Synchronizer& synchronizer() override { return synchronizer_; }
  void withdraw() override { synchronizer_.publish_as(coordinator_.hold()); }

 private:
  collective::CollectiveCoordinator::Setup setup(const group::Membership& membership,
                                                 const Assembly& assembly) {
    auto setup = led(collective::CollectiveCoordinator::Setup(), membership, leader_);
    setup.group = formation_of(membership, assembly.spec().devices);
    setup.group.link = link_of(membership, assembly.spec());
    return setup;
  }

  CollectiveSynchronizer::Setup synchronizer_setup(const group::Membership& membership,
                                                   metrics::Reporter& reporter) {
    CollectiveSynchronizer::Setup setup;
    setup.incarnation = hello_.incarnation();
    setup.storage = membership.storage;
    setup.host = membership.reachable_host();
    setup.ports = membership.peer_ports;
    setup.identity = membership.identity;
    setup.saves_at = [this](const checkpoint::Position& position) {
      return leader_.saves_at(position);
    };
    setup.states_differ = [&reporter] { reporter.count("states_differing"); };
    setup.rethrow_failure = [this] { coordinator_.rethrow_failure(); };
    return setup;
  }

  const Hello hello_;
  Leader leader_;
  collective::CollectiveCoordinator coordinator_;
  MemberReport report_;
  group::RendezvousClient client_;
  CollectiveSynchronizer synchronizer_;
};

}  // namespace

std::unique_ptr<LedGroup> make_collective_group(const group::Membership& membership,
                                                Assembly& assembly, metrics::Reporter& reporter,
                                                std::unique_ptr<checkpoint::Store> store,
                                                std::stop_token stop) {
  return std::make_unique<CollectiveGroup>(membership, assembly, reporter, std::move(store), stop);
}

}  // namespace muster::loop
