#pragma once

#include <memory>
#include <string>

#include "common/system/descriptor.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/compute/cuda/gpu.h"
#include "trainer/ps/transport/segment.h"

namespace muster::ps {

// A member's shared memory: anonymous, so that nothing is left of it once its last process has
// ended, in whatever way. It always has the same address, and each connection has a segment of its
// own: a shard that was declared lost and goes on writing does so where nobody reads any more, and
// a push that is still pending stays unchanged.
//
// With a GPU, gradients and parameters lie in its memory, at another address after a renewal, and
// the segment has no floats.
class MemberMemory {
 public:
  // The GPU, which may be null, must outlive it. Throws Unavailable if the system, or the GPU, has
  // no memory to give.
  MemberMemory(SegmentShape shape, uint32_t spins, compute::cuda::Gpu* gpu = nullptr);
  ~MemberMemory();
  MemberMemory(const MemberMemory&) = delete;
  MemberMemory& operator=(const MemberMemory&) = delete;

  // Puts another segment, all zeros, in the old one's place. Throws Unavailable.
  void renew();
  SharedMemoryOffer offer() const;
  const SegmentView& view() const { return view_; }
  compute::cuda::Gpu* gpu() const { return gpu_; }

 private:
  void fill_header();
  void renew_on_gpu();

  compute::cuda::Gpu* const gpu_;
  std::unique_ptr<compute::cuda::GpuArray<float>> on_gpu_;  // gradients, then parameters
  std::unique_ptr<compute::cuda::GpuArray<float>> before_;  // until the next renewal
  std::string gpu_offer_;
  mutable bool offered_ = false;  // since the last renewal
  SegmentView view_;
  const uint32_t spins_;
  uint64_t nonce_ = 0;
  Descriptor descriptor_;
};

// The memory that a member offered, mapped by a shard. If it can be opened and has the nonce, both
// are on one host.
class OfferedMemory {
 public:
  // `gpu` is the one that keeps the shard; null: none. Throws Invalid with the reason why it cannot
  // be mapped: another host, or not a segment of this shape, or memory of a GPU without one here.
  OfferedMemory(const SharedMemoryOffer& offer, SegmentShape shape,
                compute::cuda::Gpu* gpu = nullptr);
  ~OfferedMemory();
  OfferedMemory(const OfferedMemory&) = delete;
  OfferedMemory& operator=(const OfferedMemory&) = delete;

  const SegmentView& view() const { return view_; }

 private:
  compute::cuda::Gpu* const gpu_;
  SegmentView view_;
};

}  // namespace muster::ps
