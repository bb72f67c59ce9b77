#pragma once

#include "trainer/compute/cuda/numbers.h"

namespace muster::compute::cuda {

// A thread reads or writes the four floats at once, at an address that is a multiple of 16.
using Four = Pack<4>;

// Returns whether each row of a matrix without gaps consists of fours.
MUSTER_INLINE bool in_fours(const float* matrix, int64_t columns) {
  return columns % 4 == 0 && reinterpret_cast<uintptr_t>(matrix) % sizeof(Four) == 0;
}

// Reads the first `count` of four floats, at once if they are `aligned`; the others become zeros.
template <bool aligned>
MUSTER_INLINE Four load_four(const float* p, int32_t count = 4) {
  Four four{};
  if constexpr (aligned) {
    if (count > 0) four = load_floats<4>(p);
  } else {
    for (int32_t i = 0; i < 4; ++i)
      if (count > i) four.at[i] = p[i];
  }
  return four;
}
MUSTER_INLINE void store_four(float* p, Four four) {
  Array<false>(p).store_pack<4>(0, four);
}

}  // namespace muster::compute::cuda
