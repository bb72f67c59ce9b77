#pragma once

#include <memory>
#include <string>

#include "common/system/descriptor.h"
#include "proto/muster/parameter_server.pb.h"
#include "trainer/compute/cuda/gpu.h"
#include "trainer/ps/transport/segment.h"

namespace muster::ps {

// A member's shared memory. It is anonymous, so that nothing is left after its last process has
// ended, in whatever way. It always has the same address, and each connection has a separate
// segment: a shard that was declared lost but still writes cannot disturb later readers, and a
// pending push stays unchanged.
//
// With a GPU, gradients and parameters are in the GPU's memory, at another address after each
// renewal, and the segment has no floats.
class MemberMemory {
 public:
  // The GPU, which may be null, must outlive this object. Throws Unavailable if the system or the
  // GPU has no memory left.
  MemberMemory(SegmentShape shape, uint32_t spins, compute::cuda::Gpu* gpu = nullptr);
  ~MemberMemory();
  MemberMemory(const MemberMemory&) = delete;
  MemberMemory& operator=(const MemberMemory&) = delete;

  // Replaces the segment by a new one with zeros. Throws Unavailable.
  void renew();
  SharedMemoryOffer offer() const;
  const SegmentView& view() const { return view_; }
  compute::cuda::Gpu* gpu() const { return gpu_; }

 private:
  void fill_header();
  void renew_gpu_memory();

  compute::cuda::Gpu* const gpu_;
  std::unique_ptr<compute::cuda::GpuArray<float>> gpu_memory_;  // gradients, then parameters
  // The old memory, kept until the next renewal.
  std::unique_ptr<compute::cuda::GpuArray<float>> before_;
  std::string gpu_offer_;
  mutable bool offered_ = false;  // whether it was offered since the last renewal
  SegmentView view_;
  const uint32_t spins_;
  uint64_t nonce_ = 0;
  Descriptor descriptor_;
};

// The memory that a member offered, mapped by a shard. If the memory can be opened and has the
// nonce, member and shard are on one host.
class OfferedMemory {
 public:
  // `gpu` is the shard's GPU; null: none. Throws Invalid with the reason why the memory cannot be
  // mapped: it is on another host, it is not a segment of this shape, or it is a GPU's memory and
  // there is no GPU here.
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
