#pragma once

#include "trainer/compute/cuda/tensor_update.h"
#include "trainer/ps/shard/shard_update.h"

namespace muster::ps {

// Floats in a GPU's memory that the host can read and write.
class GpuFloats : public compute::FloatMemory {
 public:
  explicit GpuFloats(std::shared_ptr<compute::cuda::Gpu> gpu) : gpu_(std::move(gpu)) {}
  // Throws DeviceError if there is too little memory, because the shard would be incomplete.
  void* allocate(size_t bytes) override;
  void release(void* memory) noexcept override { gpu_->release_shared(memory); }

 private:
  const std::shared_ptr<compute::cuda::Gpu> gpu_;
};

// Updates on a GPU, with the same bits as on a CPU that fuses multiply and add. The GPU must be
// able to address gradients and copies.
class GpuUpdate : public ShardUpdate {
 public:
  // `memory` is the GPU's; `rounded`: see BlockUpdate. `gpu` and `optimizer` must outlive this
  // object. Throws Invalid if the range has 2^31 floats or more, or cuts a tensor that the
  // optimizer needs whole; Unavailable if the GPU has too little memory.
  GpuUpdate(compute::cuda::Gpu& gpu, std::shared_ptr<GpuFloats> memory,
            const compute::Optimizer& optimizer, compute::Range range, bool rounded);

  void run(compute::Range range, const compute::UpdateArguments& arguments, const Buffers& buffers,
           bool together) override;
  void sum(Gradients gradients, std::span<float> to, bool together) override;
  std::shared_ptr<compute::FloatMemory> memory() override { return memory_; }
  void keep(compute::ConstPlacedFloats gradients, std::span<float> to) override;

 private:
  void ask_for_sum(Gradients gradients, float* to);
  void ask_for_copy(std::span<const float> from, compute::PlacedFloats to);
  void ask_for_frozen(std::span<const float> from, compute::PlacedFloats to);

  compute::cuda::Gpu& gpu_;
  const std::shared_ptr<GpuFloats> memory_;
  const compute::Optimizer& optimizer_;
  const bool rounded_;
  // Tensors that no update changes, from the range's beginning.
  std::vector<compute::Range> frozen_;
  compute::cuda::TensorUpdate update_;
  compute::cuda::GpuArray<float> sum_;
  // Addresses of the gradients and of the parameters of each copy; the GPU reads the addresses from
  // the host's memory.
  std::unique_ptr<compute::cuda::HostArray<const float*>> from_;
  int64_t room_ = 0;  // size of from_
};

}  // namespace muster::ps
