#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "trainer/loop/roles/led_group.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"

namespace muster::loop {

// Only here does a job's strategy (parameter servers or collective) decide which objects are made.
// The references must outlive the new object; both functions throw the errors of its constructor.

// Returns the objects of rank 0. `store` comes from open_store().
std::unique_ptr<LedGroup> make_group(const group::Membership& membership, Assembly& assembly,
                                     metrics::Reporter& reporter,
                                     std::unique_ptr<checkpoint::Store> store,
                                     std::stop_token stop);

// The arguments for the synchronizer of any other member.
struct MemberSetup {
  const group::Membership& membership;
  Assembly& assembly;
  group::RendezvousClient& client;
  MemberReport& report;      // the content of client's reports
  uint64_t incarnation = 0;  // the incarnation in the member's Hello
  // Whether training is over, for when the rendezvous, which would tell it, is gone.
  std::function<bool()> finished_without_us;
};
std::unique_ptr<Synchronizer> make_synchronizer(const MemberSetup& setup);

}  // namespace muster::loop
