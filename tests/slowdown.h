#pragma once

namespace muster {

// How many times as long tests wait for what they start: a sanitizer makes programs so much slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kSlowdown = 8;
#else
constexpr int kSlowdown = 1;
#endif

}  // namespace muster
