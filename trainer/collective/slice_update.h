#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/collective/shared_state.h"
#include "trainer/compute/optimizer.h"

namespace muster::collective {

// Adds up what the members of a SharedState contributed, and updates by it.
class SliceUpdate {
 public:
  // The references must outlive it.
  SliceUpdate(const SharedState& state, const compute::Optimizer& optimizer);

  // The member's slice, once all have contributed. False: the state is fenced.
  bool run(uint64_t step, int member, const compute::UpdateArguments& arguments);
  // A fenced state's settled step, wherever it is to be. `arguments` are of the step that leads to
  // it, where that must be completed.
  void extract(std::span<float> parameters, std::span<const std::span<float>> slots,
               const compute::UpdateArguments& arguments);

 private:
  void update(size_t tile, const compute::UpdateArguments& arguments, std::span<float> parameters,
              std::span<const std::span<float>> slots);

  const SharedState& state_;
  const compute::Optimizer& optimizer_;
  compute::TreeSum tree_;
  std::vector<const float*> sums_;
  std::vector<std::span<float>> slots_;       // of the state
  std::vector<std::span<float>> tile_slots_;  // of a tile
};

}  // namespace muster::collective
