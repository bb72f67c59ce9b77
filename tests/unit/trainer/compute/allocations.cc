#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/unit/trainer/compute/support.h"

namespace {
std::atomic<int64_t> count{0};
}  // namespace

void* operator new(size_t size) {
  ++count;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace muster::compute::testing {

int64_t allocations() {
  return count;
}

}  // namespace muster::compute::testing
