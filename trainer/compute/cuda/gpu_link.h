#pragma once

#include <span>

#include "trainer/compute/parameter_layout.h"

namespace muster::compute::cuda {

// One GPU's end of a link between GPUs, of this process or of several processes. The work of its
// calls is done in order with the work of Gpu's calls. All members must make the same calls in the
// same order, each on its own thread. The destructor gives up work that is not done.
class GpuLink {
 public:
  virtual ~GpuLink() = default;

  // Sends floats [parts[m].begin, parts[m].end) of `from` to member m, and writes the floats from
  // member m to to[m]. A member sends nothing to itself.
  virtual void exchange(const float* from, std::span<const Range> parts,
                        std::span<float* const> to) = 0;
  // Copies each member's part of `values` to the same place in the `values` of all others.
  virtual void share(float* values, std::span<const Range> parts) = 0;
  // Returns when all work of this GPU is done. Throws Unavailable if the work will not be done
  // because another member has failed or given up.
  virtual void wait() = 0;
  // Makes the calls of all members of this process throw Unavailable. Any thread may call it. The
  // links cannot be used any more. Members of other processes may not notice.
  virtual void abandon() noexcept = 0;
};

}  // namespace muster::compute::cuda
