#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace muster::compute {

// Allocates on cache lines: a vector of sixteen floats that straddles two lines costs twice, which
// makes a third of an update of parameters.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>&) {}

  T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kAlignment); }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) { return true; }
};

// The buffers that kernels read and write: parameters, gradients, optimizer slots.
using Floats = std::vector<float, CacheLineAllocator<float>>;

}  // namespace muster::compute
