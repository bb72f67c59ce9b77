#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "trainer/loop/roles/led_group.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"

namespace muster::loop {

// The one place where a job's strategy, parameter servers or collective, decides what is made. The
// references must outlive what is made; both throw as that does.

// What rank 0 has. `store` is open_store()'s.
std::unique_ptr<LedGroup> make_group(const group::Membership& membership, Assembly& assembly,
                                     metrics::Reporter& reporter,
                                     std::unique_ptr<checkpoint::Store> store,
                                     std::stop_token stop);

// What any other member needs beside its client.
struct MemberSetup {
  const group::Membership& membership;
  Assembly& assembly;
  group::RendezvousClient& client;
  MemberReport& report;      // what `client` reports
  uint64_t incarnation = 0;  // as the member's Hello says
  // Whether training is over though the rendezvous, which would say so, has gone.
  std::function<bool()> finished_without_us;
};
std::unique_ptr<Synchronizer> make_synchronizer(const MemberSetup& setup);

}  // namespace muster::loop
