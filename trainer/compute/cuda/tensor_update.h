#pragma once

#include <vector>

#include "trainer/compute/cuda/gpu.h"
#include "trainer/compute/optimizer.h"

namespace muster::compute::cuda {

// Gives the memory of an optimizer's slots: slot(i) returns the floats of slot i, for `count`
// slots.
template <class Slot>
void set_slots(const Optimizer& optimizer, size_t count, Slot slot, FlatBuffers& buffers) {
  const size_t of_formula = optimizer.average_slot().value_or(count);
  if (of_formula > 0) buffers.first = slot(0);
  if (of_formula > 1) buffers.second = slot(1);
  if (of_formula < count) buffers.average = slot(of_formula);
}

// The optimizer's update of a range of a layout on a GPU.
class TensorUpdate {
 public:
  // The range must not cut a tensor if the optimizer needs whole tensors.
  TensorUpdate(Gpu& gpu, const ParameterLayout& layout, Range range);

  // Prepares an update, on the host, for apply(). For an optimizer that needs whole tensors,
  // prepare() must be called when the gradients are complete, and it waits for the GPU. An update
  // of the other `turn` may be running in the meantime.
  void prepare(const Optimizer& optimizer, const UpdateArguments& arguments,
               const FlatBuffers& buffers, int turn = 0);
  // Asks the GPU for the update of turn 0. It can be recorded. `before` and `copy`: see
  // UpdateTensors; only updated tensors are copied, not frozen ones.
  void apply(const FlatBuffers& buffers, const float* before = nullptr, float* copy = nullptr);
  // Asks for the same update, of any turn, after the rules() of this turn have been fetched.
  void apply_fetched(const FlatBuffers& buffers, const float* before = nullptr,
                     float* copy = nullptr);
  Fetch::Piece rules(int turn = 0) const;

 private:
  void set_rules(const Optimizer& optimizer, const UpdateArguments& arguments, int turn);
  std::vector<float> ratios(const Optimizer& optimizer, const FlatBuffers& buffers);

  Gpu& gpu_;
  const ParameterLayout& layout_;
  std::vector<TensorPiece> pieces_;  // pieces of trainable tensors come first
  int64_t trainable_ = 0;            // the number of pieces of trainable tensors
  int64_t state_begin_ = 0;          // the first tensor of the state segment
  GpuArray<TensorPiece> gpu_pieces_;
  HostArray<UpdateRule> rules_;  // [2, tensors], of each turn
  GpuArray<UpdateRule> gpu_rules_;
  HostArray<double> squares_;
  GpuArray<double> gpu_squares_;
};

}  // namespace muster::compute::cuda
