#pragma once

#include "common/system/descriptor.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/ps/transport/segment.h"

namespace muster::ps {

// A member's shared memory: anonymous, so that nothing is left of it once its last process has
// ended, in whatever way. It always has the same address, and each connection has a segment of its
// own: a shard that was declared lost and goes on writing does so where nobody reads any more, and
// a push that is still pending stays unchanged.
class MemberMemory {
 public:
  // Throws Unavailable if the system has no memory to give.
  MemberMemory(SegmentShape shape, uint32_t spins);
  ~MemberMemory();
  MemberMemory(const MemberMemory&) = delete;
  MemberMemory& operator=(const MemberMemory&) = delete;

  // Puts another segment, all zeros, in the old one's place. Throws Unavailable.
  void renew();
  SharedMemoryOffer offer() const;
  const SegmentView& view() const { return view_; }

 private:
  void fill_header();

  SegmentView view_;
  const uint32_t spins_;
  uint64_t nonce_ = 0;
  Descriptor descriptor_;
};

// The memory that a member offered, mapped by a shard. If it can be opened and has the nonce, both
// are on one host.
class OfferedMemory {
 public:
  // Throws Invalid with the reason why it cannot be mapped: another host, or not a segment of this
  // shape.
  OfferedMemory(const SharedMemoryOffer& offer, SegmentShape shape);
  ~OfferedMemory();
  OfferedMemory(const OfferedMemory&) = delete;
  OfferedMemory& operator=(const OfferedMemory&) = delete;

  const SegmentView& view() const { return view_; }

 private:
  SegmentView view_;
};

}  // namespace muster::ps
