#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "trainer/compute/cuda/engine.h"
#include "trainer/compute/engine_group.h"

namespace muster::compute::cuda {

// The links only move gradients; kernels add them up, in an order that depends on the number of
// devices alone. So the sums have the same bits as on the host.
class CudaEngineGroup : public EngineGroup {
 public:
  CudaEngineGroup(std::span<CudaEngine* const> engines, const Optimizer& optimizer);
  ~CudaEngineGroup() override;

  Memory& parameters() override { return *parameters_; }
  std::span<Memory* const> slots() override { return slot_views_; }
  std::vector<Memory*> state_of(int engine) override;
  std::string make_link_id() override;
  std::unique_ptr<Link> link(const LinkedDevices& devices) override;

 private:
  friend class CudaEngineLink;
  struct Member {
    Member(CudaEngine& made, size_t slot_count);
    CudaEngine& engine;
    CudaMemory parameters;
    std::deque<CudaMemory> slots;
    TensorUpdate update;
  };

  const Optimizer& optimizer_;
  std::deque<Member> members_;
  std::unique_ptr<Memory> parameters_;
  std::vector<std::unique_ptr<Memory>> slots_;
  std::vector<Memory*> slot_views_;
};

}  // namespace muster::compute::cuda
