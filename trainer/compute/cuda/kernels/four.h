#pragma once

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// Four floats at an address that is a multiple of 16, which a thread reads or writes at once.
struct alignas(16) Four {
  float at[4];
};

MUSTER_INLINE bool fits_four(const float* p) {
  return reinterpret_cast<uintptr_t>(p) % sizeof(Four) == 0;
}
MUSTER_INLINE Four load_four(const float* p) {
  return *reinterpret_cast<const Four*>(p);
}
MUSTER_INLINE void store_four(float* p, Four four) {
  *reinterpret_cast<Four*>(p) = four;
}

}  // namespace muster::compute::cuda
