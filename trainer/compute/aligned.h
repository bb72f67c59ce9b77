#pragma once

#include <cstddef>
#include <new>
#include <type_traits>
#include <vector>

namespace muster::compute {

// Memory beside the heap that the host can address, aligned to cache lines: see GpuFloats.
class FloatMemory {
 public:
  virtual ~FloatMemory() = default;
  virtual void* allocate(size_t bytes) = 0;
  virtual void release(void* memory) noexcept = 0;
};

// Allocates on cache lines: a vector of sixteen floats that straddles two lines costs twice, which
// makes a third of an update of parameters. Uses the heap, or other memory, which must outlive the
// allocations. A vector that is moved keeps its memory; a copy is made on the heap.
template <typename T>
struct CacheLineAllocator {
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;  // NOLINT: the standard's name
  using propagate_on_container_swap = std::true_type;             // NOLINT: the standard's name
  using is_always_equal = std::false_type;                        // NOLINT: the standard's name
  static constexpr std::align_val_t kAlignment{64};

  CacheLineAllocator() = default;
  explicit CacheLineAllocator(FloatMemory* other) : memory(other) {}
  template <typename U>
  CacheLineAllocator(const CacheLineAllocator<U>& other) : memory(other.memory) {}
  CacheLineAllocator select_on_container_copy_construction() const { return {}; }

  T* allocate(size_t n) {
    const size_t bytes = n * sizeof(T);
    return static_cast<T*>(memory ? memory->allocate(bytes) : ::operator new(bytes, kAlignment));
  }
  void deallocate(T* at, size_t) {
    memory ? memory->release(at) : ::operator delete(at, kAlignment);
  }
  friend bool operator==(const CacheLineAllocator&, const CacheLineAllocator&) = default;

  FloatMemory* memory = nullptr;  // null: the heap
};

// The buffers that kernels read and write: parameters, gradients, optimizer slots.
using Floats = std::vector<float, CacheLineAllocator<float>>;

}  // namespace muster::compute
