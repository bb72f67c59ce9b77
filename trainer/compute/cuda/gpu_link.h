#pragma once

#include <span>

#include "trainer/compute/parameter_layout.h"

namespace muster::compute::cuda {

// One GPU's end of a group of GPUs. Its calls are asked of the GPU as those of Gpu are. All members
// must ask for the same ones in the same order, each on a thread of its own.
class GpuLink {
 public:
  virtual ~GpuLink() = default;

  // Floats [parts[m].begin, parts[m].end) of `from` go to member m, and those that member m sends
  // come to to[m]. A member sends nothing to itself.
  virtual void exchange(const float* from, std::span<const Range> parts,
                        std::span<float* const> to) = 0;
  // Each member's part of `values` goes to the same place of all others.
  virtual void share(float* values, std::span<const Range> parts) = 0;
  // Makes all members' calls, and the waiting for their GPUs, throw Unavailable. Any thread may
  // call it. The links are of no more use.
  virtual void abandon() noexcept = 0;
};

}  // namespace muster::compute::cuda
