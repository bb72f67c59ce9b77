#include "trainer/collective/wire_floats.h"

#include "trainer/host/arithmetic.h"

namespace muster::collective {

WireFloats::WireFloats(size_t size, bool rounded)
    : arithmetic_(&host::arithmetic()), floats_(size), packed_(rounded ? kWidth * size : 0) {}

iovec WireFloats::bytes(compute::Range range) {
  if (packed_.empty()) return {floats_.data() + range.begin, range.size() * sizeof(float)};
  return {packed_.data() + kWidth * range.begin, kWidth * range.size()};
}

void WireFloats::pack(compute::Range range) {
  if (packed_.empty()) return;
  arithmetic_->to_bfloat16(static_cast<int64_t>(range.size()), floats_.data() + range.begin,
                           packed_.data() + kWidth * range.begin);
}

void WireFloats::unpack(compute::Range range) {
  if (packed_.empty()) return;
  arithmetic_->from_bfloat16(static_cast<int64_t>(range.size()),
                             packed_.data() + kWidth * range.begin, floats_.data() + range.begin);
}

}  // namespace muster::collective
