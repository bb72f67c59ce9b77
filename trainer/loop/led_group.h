#pragma once

#include "trainer/group/coordinator.h"
#include "trainer/group/rendezvous_server.h"
#include "trainer/loop/leader.h"
#include "trainer/loop/synchronizer.h"

namespace muster::loop {

// Everything that rank 0 has, however the group trains.
class LedGroup {
 public:
  virtual ~LedGroup() = default;
  virtual group::RendezvousServer& server() = 0;
  virtual Leader& leader() = 0;
  virtual group::Coordinator& coordinator() = 0;
  virtual Synchronizer& synchronizer() = 0;
  // Rank 0 is about to leave, and saves what there is: whoever else leaves now is not missed.
  virtual void withdraw() {}
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
