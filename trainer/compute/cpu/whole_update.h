#pragma once

#include <functional>
#include <span>
#include <vector>

#include "trainer/compute/optimizer.h"
#include "trainer/compute/tensor_ratios.h"
#include "trainer/host/team.h"

namespace muster::compute::cpu {

// Updates a whole layout on a team's threads, for an optimizer that needs whole tensors. run()
// allocates nothing.
class WholeUpdate {
 public:
  explicit WholeUpdate(const ParameterLayout& layout);
  WholeUpdate(const WholeUpdate&) = delete;
  WholeUpdate& operator=(const WholeUpdate&) = delete;

  // The buffers have the layout's size. The slots are in the order of Optimizer::slot_names().
  void run(host::Team& team, const Optimizer& optimizer, const UpdateArguments& arguments,
           std::span<float> parameters, std::span<const float> gradients,
           std::span<const std::span<float>> slots);

 private:
  void measure(host::TeamThread thread);
  void apply(host::TeamThread thread);

  TensorRatios measured_;
  std::vector<float> ratios_;
  // The arguments of the current run.
  host::Team* team_ = nullptr;
  const Optimizer* optimizer_ = nullptr;
  UpdateArguments arguments_;
  std::span<float> parameters_;
  std::span<const float> gradients_;
  std::span<const std::span<float>> slots_;
  const std::function<void(host::TeamThread)> work_;
};

}  // namespace muster::compute::cpu
