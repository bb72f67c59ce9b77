#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trainer/collective/shared_state.h"
#include "trainer/compute/optimizer.h"
#include "trainer/compute/tensor_ratios.h"

namespace muster::collective {

// Returns the shape of the memory in which `group` trains with `optimizer`.
SharedState::Shape shape_of(const GroupShape& group, const compute::Optimizer& optimizer);

// Adds up the gradients that the members of a SharedState contributed, and makes the update.
class SliceUpdate {
 public:
  // The references must outlive this object.
  SliceUpdate(const SharedState& state, const compute::Optimizer& optimizer);

  // Updates the member's slice. All members must have contributed. Returns false if the state is
  // fenced.
  bool run(uint64_t step, int member, const compute::UpdateArguments& arguments);
  // The first part of run(): if the optimizer needs whole tensors, writes the ratios of the slice's
  // tensors to the state. Returns the arguments for updating the slice.
  compute::UpdateArguments measure(int member, const compute::UpdateArguments& arguments);
  // Writes a fenced state's settled step to `parameters` and `slots`. `arguments` are those of the
  // step that leads to the settled step; they are used if that step must be completed.
  void extract(std::span<float> parameters, std::span<const std::span<float>> slots,
               const compute::UpdateArguments& arguments);

 private:
  void measure(compute::TensorRatios& measured, const compute::UpdateArguments& arguments,
               std::span<float> parameters, std::span<const std::span<float>> slots,
               std::span<float> ratios);
  std::vector<float> ratios_of(std::span<const size_t> old_tiles,
                               const compute::UpdateArguments& arguments,
                               std::span<float> parameters,
                               std::span<const std::span<float>> slots);
  void update(size_t tile, const compute::UpdateArguments& arguments, std::span<float> parameters,
              std::span<const std::span<float>> slots);

  const SharedState& state_;
  const compute::Optimizer& optimizer_;
  compute::TreeSum tree_;
  std::vector<const float*> sums_;
  std::vector<std::span<float>> slots_;            // slots of the state
  std::vector<std::span<float>> tile_slots_;       // slots of a tile
  std::optional<compute::TensorRatios> measured_;  // ratios of the last slice
};

}  // namespace muster::collective
