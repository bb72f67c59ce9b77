#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <thread>

#include "trainer/compute/parameter_layout.h"
#include "trainer/ps/transport/shared_memory.h"

namespace muster::host {
struct Arithmetic;
}

namespace muster::ps {

// A shard's side of a member's shared memory: a thread waits for the member's requests, and
// answer() writes the replies.
class MemberMailbox {
 public:
  // The shard's part of the memory.
  struct Place {
    SegmentShape shape;
    size_t shard = 0;
    compute::Range range;
    bool bfloat16 = false;              // parameters are rounded to bfloat16
    compute::cuda::Gpu* gpu = nullptr;  // the shard's GPU; null: none
  };

  // Throws Invalid with the reason why the offer cannot be used.
  MemberMailbox(const SharedMemoryOffer& offer, const Place& place);
  ~MemberMailbox();
  MemberMailbox(const MemberMailbox&) = delete;
  MemberMailbox& operator=(const MemberMailbox&) = delete;

  // Receives a request, or nothing for a malformed one; returns false to stop receiving.
  using Receive = std::function<bool(const std::optional<PushHeader>&)>;
  // Starts the mailbox's thread, which calls `receive` with one request at a time. Call this once.
  // Throws std::system_error if the system gives no thread.
  void start(Receive receive);
  // Stops receiving and waits until no request is being received.
  void stop();

  // Answers the request; `values` are written to parameters(). One caller at a time.
  void answer(const ReplyHeader& header, std::span<const float> values);

  // The floats of the shard's range. The member does not access them between its request and the
  // answer.
  compute::ConstPlacedFloats gradients() const;
  compute::PlacedFloats parameters() const;

 private:
  void run(const Receive& receive);

  const OfferedMemory memory_;
  const Place place_;
  Mailbox& mailbox_;
  const host::Arithmetic* const rounding_;  // null: none
  const uint32_t spins_;
  uint32_t answers_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace muster::ps
