#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "trainer/compute/cuda/engine.h"
#include "trainer/compute/cuda/gpu_link.h"
#include "trainer/compute/engine_group.h"

namespace muster::compute::cuda {

// The links move gradients and parameters; what is added up is added by kernels, in an order that
// depends on the number of engines alone. So the bits are those of a sum on the host.
class CudaEngineGroup : public EngineGroup {
 public:
  // links[i] is that of engines[i].
  CudaEngineGroup(std::span<CudaEngine* const> engines, std::vector<std::unique_ptr<GpuLink>> links,
                  const Optimizer& optimizer);

  Memory& parameters() override { return *parameters_; }
  std::span<Memory* const> slots() override { return slot_views_; }
  void update(int engine, const UpdateArguments& arguments) override;

 private:
  struct Member {
    Member(CudaEngine& made, std::unique_ptr<GpuLink> end, Range share, int members, size_t slots);
    CudaEngine& engine;
    const std::unique_ptr<GpuLink> link;
    GpuArray<float> inbox;  // the others' gradients of its share
    TensorUpdate update;
    std::deque<CudaMemory> slots;  // each as large as the parameters; its share of them is used
  };

  void ask(size_t member, const UpdateArguments& arguments);
  void add_up(size_t member, const std::vector<float*>& leaves);

  const Optimizer& optimizer_;
  const std::vector<Range> shares_;
  std::deque<Member> members_;
  std::unique_ptr<Memory> parameters_;
  std::vector<std::unique_ptr<Memory>> slots_;
  std::vector<Memory*> slot_views_;
};

}  // namespace muster::compute::cuda
