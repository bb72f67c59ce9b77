#pragma once

#include "trainer/group/coordinator.h"
#include "trainer/group/leader_address_file.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/leader.h"
#include "trainer/loop/synchronizers/synchronizer.h"

namespace muster::loop {

// All objects that rank 0 needs, for both strategies.
class LedGroup {
 public:
  virtual ~LedGroup() = default;
  group::RendezvousServer& server() { return server_; }
  virtual Leader& leader() = 0;
  virtual group::Coordinator& coordinator() = 0;
  virtual Synchronizer& synchronizer() = 0;
  // Call this when rank 0 is about to leave and saves its state: from here on, other members that
  // leave cause no new generation.
  virtual void withdraw() {}

 protected:
  LedGroup(const group::Membership& membership, const Assembly& assembly)
      : server_(membership.rendezvous_address(), membership.identity,
                expected_peers(membership, assembly)),
        address_file_(membership) {}

  void count_checkpoint() {
    server_.update([](GroupView& view) { view.set_checkpoints(view.checkpoints() + 1); });
  }
  // Returns `setup` with the fields that every group's coordinator needs.
  template <class Setup>
  static Setup led(Setup setup, const group::Membership& membership, Leader& leader) {
    setup.storage = membership.storage;
    setup.job_uid = membership.uid;
    setup.resume_at = [&leader](const checkpoint::Store::Found& found) {
      return leader.resume_at(found);
    };
    return setup;
  }

 private:
  group::RendezvousServer server_;  // destroyed last, because all other members use it
  group::LeaderAddressFile address_file_;
};

// `store` comes from open_store(). The references must outlive the group. Both functions throw the
// errors of the constructors of the group's parts.
std::unique_ptr<LedGroup> make_ps_group(const group::Membership& membership, Assembly& assembly,
                                        metrics::Reporter& reporter,
                                        std::unique_ptr<checkpoint::Store> store,
                                        std::stop_token stop);
std::unique_ptr<LedGroup> make_collective_group(const group::Membership& membership,
                                                Assembly& assembly, metrics::Reporter& reporter,
                                                std::unique_ptr<checkpoint::Store> store,
                                                std::stop_token stop);

}  // namespace muster::loop
