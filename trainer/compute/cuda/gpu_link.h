#pragma once

#include <span>

#include "trainer/compute/parameter_layout.h"

namespace muster::compute::cuda {

// One GPU's end of a group of GPUs, of this process or of several. What its calls ask for is done
// in the order of Gpu's calls. All members must ask for the same in the same order, each on a
// thread of its own. The end of a link's life gives up what has been asked for and is not done.
class GpuLink {
 public:
  virtual ~GpuLink() = default;

  // Floats [parts[m].begin, parts[m].end) of `from` go to member m, and those that member m sends
  // come to to[m]. A member sends nothing to itself.
  virtual void exchange(const float* from, std::span<const Range> parts,
                        std::span<float* const> to) = 0;
  // Each member's part of `values` goes to the same place of all others.
  virtual void share(float* values, std::span<const Range> parts) = 0;
  // Returns when all that was asked of this GPU is done. Throws Unavailable if it will not be done
  // because another member has failed or given up.
  virtual void wait() = 0;
  // Makes the calls of all members of this process throw Unavailable. Any thread may call it. The
  // links are of no more use. Members of other processes may not notice.
  virtual void abandon() noexcept = 0;
};

}  // namespace muster::compute::cuda
