#include "common/threads/heap.h"

#include <malloc.h>

namespace muster {

namespace {
constexpr int kMostAllowed = 32 << 20;  // glibc silently ignores a higher threshold
}

void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, kMostAllowed);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
}

void give_back_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 128 << 10);  // glibc's default, fixed so that glibc does not raise it
  mallopt(M_ARENA_MAX, 2);
}

}  // namespace muster
