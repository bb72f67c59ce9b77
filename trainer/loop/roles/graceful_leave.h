#pragma once

#include <stop_token>
#include <thread>

#include "trainer/group/rendezvous_client.h"
#include "trainer/loop/synchronizers/collective_synchronizer.h"

namespace muster::loop {

// Lets a member leave an elastic group. When the member is asked to stop, it reports this and
// continues to train until the group has formed its next generation without it, between two steps.
// If the group would be too small, the member stays until another member comes, for at most ten
// seconds.
class GracefulLeave {
 public:
  // `stop` is the request to leave. The references must outlive this object.
  GracefulLeave(group::RendezvousClient& client, MemberReport& report, uint64_t incarnation,
                std::stop_token stop);
  ~GracefulLeave();
  GracefulLeave(const GracefulLeave&) = delete;
  GracefulLeave& operator=(const GracefulLeave&) = delete;

  // A stop of this token ends the training: the group continues without this member, or does not
  // answer.
  std::stop_token token() const { return trained_.get_token(); }

 private:
  void run(const std::stop_token& stop, uint64_t incarnation);

  group::RendezvousClient& client_;
  MemberReport& report_;
  std::stop_source trained_;
  std::stop_source ended_;
  std::thread thread_;
};

}  // namespace muster::loop
