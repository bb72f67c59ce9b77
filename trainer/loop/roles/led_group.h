#pragma once

#include "trainer/group/coordinator.h"
#include "trainer/group/leader_address_file.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/roles/attend.h"
#include "trainer/loop/roles/leader.h"
#include "trainer/loop/synchronizers/synchronizer.h"

namespace muster::loop {

// Everything that rank 0 has, however the group trains.
class LedGroup {
 public:
  virtual ~LedGroup() = default;
  group::RendezvousServer& server() { return server_; }
  virtual Leader& leader() = 0;
  virtual group::Coordinator& coordinator() = 0;
  virtual Synchronizer& synchronizer() = 0;
  // Rank 0 is about to leave, and saves what there is: whoever else leaves now is not missed.
  virtual void withdraw() {}

 protected:
  LedGroup(const group::Membership& membership, const Assembly& assembly)
      : server_(membership.rendezvous_address(), expected_peers(membership, assembly)),
        address_file_(membership) {}

  void count_checkpoint() {
    server_.update([](GroupView& view) { view.set_checkpoints(view.checkpoints() + 1); });
  }
  // `setup` with what every group's coordinator is told.
  template <class Setup>
  static Setup led(Setup setup, const group::Membership& membership, Leader& leader) {
    setup.storage = membership.storage;
    setup.job_uid = membership.uid;
    setup.resume_at = [&leader](const checkpoint::Store::Found& found) {
      return leader.resume_at(found);
    };
    return setup;
  }

  group::RendezvousServer server_;  // destroyed last, as all the rest uses it

 private:
  group::LeaderAddressFile address_file_;
};

// `store` is open_store()'s. The references must outlive it. They throw as what they are made of
// does.
std::unique_ptr<LedGroup> make_ps_group(const group::Membership& membership, Assembly& assembly,
                                        metrics::Reporter& reporter,
                                        std::unique_ptr<checkpoint::Store> store,
                                        std::stop_token stop);
std::unique_ptr<LedGroup> make_collective_group(const group::Membership& membership,
                                                Assembly& assembly, metrics::Reporter& reporter,
                                                std::unique_ptr<checkpoint::Store> store,
                                                std::stop_token stop);

}  // namespace muster::loop
