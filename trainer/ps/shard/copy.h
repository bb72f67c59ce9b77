#pragma once

#include <cstring>
#include <span>

#include "trainer/host/arithmetic.h"

namespace muster::ps {

// Copies unless both spans are the same shared memory. `to` is as long as `from`.
inline void copy_unless_same(std::span<const float> from, std::span<float> to) {
  if (!from.empty() && from.data() != to.data())
    std::memcpy(to.data(), from.data(), from.size_bytes());
}

// Copies; rounds to bfloat16 if `rounding` is not null.
inline void give(std::span<const float> from, std::span<float> to,
                 const host::Arithmetic* rounding) {
  if (rounding)
    rounding->round_to_bfloat16(static_cast<int64_t>(from.size()), from.data(), to.data());
  else
    copy_unless_same(from, to);
}

}  // namespace muster::ps
