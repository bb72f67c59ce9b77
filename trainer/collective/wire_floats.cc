#include "trainer/collective/wire_floats.h"

#include "trainer/compute/cpu/kernels.h"

namespace muster::collective {

WireFloats::WireFloats(size_t size, bool rounded)
    : kernels_(&compute::cpu::select_kernels()),
      floats_(size),
      packed_(rounded ? kWidth * size : 0) {}

iovec WireFloats::bytes(compute::Range range) {
  if (packed_.empty()) return {floats_.data() + range.begin, range.size() * sizeof(float)};
  return {packed_.data() + kWidth * range.begin, kWidth * range.size()};
}

void WireFloats::pack(compute::Range range) {
  if (packed_.empty()) return;
  kernels_->to_bfloat16(static_cast<int64_t>(range.size()), floats_.data() + range.begin,
                        packed_.data() + kWidth * range.begin);
}

void WireFloats::unpack(compute::Range range) {
  if (packed_.empty()) return;
  kernels_->from_bfloat16(static_cast<int64_t>(range.size()), packed_.data() + kWidth * range.begin,
                          floats_.data() + range.begin);
}

}  // namespace muster::collective
