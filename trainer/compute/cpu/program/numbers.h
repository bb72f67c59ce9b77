#pragma once

#include <cstdint>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/arithmetic.h"

namespace muster::compute::cpu {

// Numbers of an activation or of its gradient as they lie in memory: floats, or bfloat16.
struct Numbers {
  void* at = nullptr;
  bool half = false;  // bfloat16

  Numbers operator+(int64_t count) const {
    return {static_cast<char*>(at) + count * (half ? 2 : 4), half};
  }
  // For numbers that are floats.
  float* floats() const { return static_cast<float*>(at); }
};

// These two surround the code that writes `count` numbers. begin_write() returns where to write
// them as floats: at their place, or in `scratch`, which has as many floats. With `keep`, it holds
// what the numbers are now. end_write() takes what that code has written;
// NormalizedValue::add_statistics() and add_sums() do so too.
inline float* begin_write(Numbers to, float* scratch, int64_t count, bool keep) {
  if (!to.half) return to.floats();
  if (keep) host::arithmetic().from_bfloat16(count, to.at, scratch);
  return scratch;
}
inline void end_write(const Kernels& kernels, Numbers to, const float* written, int64_t count) {
  if (to.half) kernels.to_bfloat16(count, written, to.at);
}

}  // namespace muster::compute::cpu
