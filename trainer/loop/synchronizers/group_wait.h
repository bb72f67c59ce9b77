#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <stop_token>

#include "trainer/group/rendezvous_client.h"

namespace muster::loop {

// How a synchronizer of a group waits for its rendezvous: for what is asked of this member, for the
// end of training, and for errors. For one calling thread.
class GroupWait {
 public:
  struct Setup {
    std::function<void()> rethrow_failure;  // rank 0: throws its coordinator's error
    // Other ranks: whether training is over, for when the rendezvous, which would tell it, is gone.
    // Called a few times a second.
    std::function<bool()> finished_without_us = [] { return false; };
    // How long a rendezvous may leave us without an answer.
    std::chrono::milliseconds patience = group::RendezvousClient::kPatience;
  };
  using Condition = std::function<bool(const GroupView&)>;

  // `client` must outlive this object.
  GroupWait(const group::RendezvousClient& client, Setup setup)
      : client_(client), setup_(std::move(setup)) {}

  // Waits for a view that `asks` something of this member, without a limit as long as the
  // rendezvous answers. Returns nothing if training has finished or `stop` was requested. Throws
  // Invalid if the group has failed or rejects us, and Unavailable if the rendezvous is gone for
  // good.
  std::optional<GroupView> wait(const Condition& asks, const std::stop_token& stop);
  // Whether wait() found that training has finished.
  bool finished() const { return finished_; }

  // Whether a wait for other members must end, because the view `ends` their generation or training
  // has finished. Throws what wait() throws.
  bool is_over(const Condition& ends) const;

 private:
  const group::RendezvousClient& client_;
  const Setup setup_;
  bool finished_ = false;
};

}  // namespace muster::loop
