#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "trainer/loop/roles/led_group.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"

namespace muster::loop {

// The one place where a job's strategy, parameter servers or collective, decides which objects are
// made. The references must outlive the object made; both functions throw what its constructor
// throws.

// Makes the objects of rank 0. `store` comes from open_store().
std::unique_ptr<LedGroup> make_group(const group::Membership& membership, Assembly& assembly,
                                     metrics::Reporter& reporter,
                                     std::unique_ptr<checkpoint::Store> store,
                                     std::stop_token stop);

// The arguments of any other member's synchronizer.
struct MemberSetup {
  const group::Membership& membership;
  Assembly& assembly;
  group::RendezvousClient& client;
  MemberReport& report;      // what `client` reports
  uint64_t incarnation = 0;  // as the member's Hello says
  // Whether training is over although the rendezvous, which would say so, is gone.
  std::function<bool()> finished_without_us;
};
std::unique_ptr<Synchronizer> make_synchronizer(const MemberSetup& setup);

}  // namespace muster::loop
