#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "proto/muster/rendezvous.pb.h"

namespace grpc {
class Channel;
}

namespace muster::group {

// One replica's place in the group. While the object lives it keeps a stream to the rendezvous,
// opens the stream again with back-off when it breaks, and sends a heartbeat every second.
// Thread-safe.
class RendezvousClient {
 public:
  using Report = std::function<void(PeerMessage&)>;  // adds a shard's state; called on our thread
  // A way to the rendezvous, for one attempt. A doubtful way may lead to another job's rendezvous
  // by now, so a rejection on such a way is ignored.
  struct Way {
    std::shared_ptr<grpc::Channel> channel;
    bool doubtful = false;
  };
  // Returns the next way; called on our thread before each attempt. `reached`: the last way led to
  // the rendezvous.
  using Ways = std::function<Way(bool reached)>;
  // How long a member tolerates a rendezvous that does not answer.
  static constexpr std::chrono::milliseconds kPatience = std::chrono::minutes(10);

  // `peer` names the rendezvous in messages.
  RendezvousClient(std::shared_ptr<grpc::Channel> channel, std::string peer, Hello hello,
                   Report report);
  RendezvousClient(Ways ways, std::string peer, Hello hello, Report report);
  ~RendezvousClient();
  RendezvousClient(const RendezvousClient&) = delete;
  RendezvousClient& operator=(const RendezvousClient&) = delete;

  // Returns the newest view; before the first one, a default view (generation 0, forming).
  GroupView view() const;
  // Returns view() for a caller that waits for others; throws the errors of wait().
  GroupView require_view(std::chrono::milliseconds patience) const;
  // Returns the number of received views. Cheap enough to call in every step.
  uint64_t revision() const;
  bool connected() const;
  // Returns how long the rendezvous has been silent.
  std::chrono::milliseconds silence() const;
  // Sends a heartbeat now, because something has changed.
  void report_now();

  // Waits until `ready` holds for the view, `stop` is requested, or `wait` is over; returns the
  // view. Throws Invalid (kProtocol) with the reason that the rendezvous gave if it rejected us;
  // Unavailable if it has been silent for longer than `patience`.
  GroupView wait(const std::function<bool(const GroupView&)>& ready, std::stop_token stop,
                 std::chrono::milliseconds wait, std::chrono::milliseconds patience) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::group
