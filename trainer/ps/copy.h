#pragma once

#include <cstring>
#include <span>

namespace muster::ps {

// Nothing to do where both are the same shared memory. `to` is as long as `from`.
inline void copy_unless_same(std::span<const float> from, std::span<float> to) {
  if (!from.empty() && from.data() != to.data())
    std::memcpy(to.data(), from.data(), from.size_bytes());
}

}  // namespace muster::ps
