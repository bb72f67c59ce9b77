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

// A shard's side of a member's shared memory: a thread that waits for the member's requests, and
// the replies.
class MemberMailbox {
 public:
  // Which part of the memory is the shard's.
  struct Place {
    SegmentShape shape;
    size_t shard = 0;
    compute::Range range;
    bool bfloat16 = false;  // parameters are rounded to it
  };

  // Throws Invalid saying why it cannot be used.
  MemberMailbox(const SharedMemoryOffer& offer, const Place& place);
  ~MemberMailbox();
  MemberMailbox(const MemberMailbox&) = delete;
  MemberMailbox& operator=(const MemberMailbox&) = delete;

  // Takes a request, or nothing for what is none; false: nothing more is to be received.
  using Receive = std::function<bool(const std::optional<PushHeader>&)>;
  // `receive` is called with one at a time, from the mailbox's own thread. Once. Throws
  // std::system_error where the system gives no thread.
  void start(Receive receive);
  // Waits until nothing is being received any more.
  void stop();

  // Answers the request; `values` are written to parameters(). One caller at a time.
  void answer(const ReplyHeader& header, std::span<const float> values);

  // Of the shard's range. The member leaves them alone from its request until the answer.
  std::span<const float> gradients() const;
  std::span<float> parameters() const;

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
