#pragma once

#include <cstdint>

#include "trainer/compute/cpu/kernels/kernels.h"
#include "trainer/host/arithmetic.h"

namespace muster::compute::cpu {

// Numbers of an activation or of its gradient in memory: floats, or bfloat16.
struct Numbers {
  void* at = nullptr;
  bool half = false;  // bfloat16

  Numbers operator+(int64_t count) const {
    return {static_cast<char*>(at) + count * (half ? 2 : 4), half};
  }
  // For numbers that are floats.
  float* floats() const { return static_cast<float*>(at); }
};

// begin_write() and end_write() surround the code that writes `count` numbers. begin_write()
// returns the memory in which to write them as floats: the numbers' own place, or `scratch`, which
// has `count` floats. With `keep`, this memory holds the present numbers. end_write() stores the
// written floats; NormalizedValue::add_statistics() and add_sums() also do this.
inline float* begin_write(Numbers to, float* scratch, int64_t count, bool keep) {
  if (!to.half) return to.floats();
  if (keep) host::arithmetic().from_bfloat16(count, to.at, scratch);
  return scratch;
}
inline void end_write(const Kernels& kernels, Numbers to, const float* written, int64_t count) {
  if (to.half) kernels.to_bfloat16(count, written, to.at);
}

}  // namespace muster::compute::cpu
