#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "trainer/group/identity.h"
#include "trainer/group/peer_registry.h"

namespace grpc {
class Channel;
}

namespace muster::group {

// Rank 0's side of the rendezvous: peers attend by one gRPC stream each, and the group's view is
// sent to all of them at every change and once a second. Thread-safe.
class RendezvousServer {
 public:
  // Listens at once. Throws Unavailable naming the address if it cannot be bound. `greeting` is the
  // time limit for a stream's first message.
  RendezvousServer(const std::string& address, const Identity& identity,
                   PeerRegistry::Expected expected,
                   std::chrono::milliseconds greeting = PeerRegistry::kGreeting);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer&) = delete;
  RendezvousServer& operator=(const RendezvousServer&) = delete;

  // Runs `read` on the registry, under its lock.
  void inspect(const std::function<void(const PeerRegistry&)>& read) const;
  // Waits until the registry changes, or for at most `wait`.
  void wait_for_change(std::chrono::milliseconds wait);
  // Tells the registry that a generation is open.
  void opened(uint64_t generation);
  // Changes the view and sends it to all peers.
  void update(const std::function<void(GroupView&)>& change);
  GroupView view() const;

  // Returns a channel to this server that stays within the process and uses no network.
  std::shared_ptr<grpc::Channel> local_channel();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::group
