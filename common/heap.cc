#include "common/heap.h"

#include <malloc.h>

namespace muster {

namespace {
constexpr int kMostAllowed = 32 << 20;  // glibc ignores a higher threshold without a word
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, kMostAllowed);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

}  // namespace muster
