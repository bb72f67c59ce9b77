#pragma once

#include <cstddef>

#include "trainer/compute/cuda/kernels/scalar.h"

namespace muster::compute::cuda {

// An array in a GPU's memory, of floats or of bfloat16: a float's upper half, rounded to the
// nearest, ties to even; NaN stays NaN. The type does not say whether the array may be written.
class Numbers {
 public:
  Numbers() = default;
  MUSTER_INLINE Numbers(const float* floats) : Numbers(floats, false) {}
  MUSTER_INLINE Numbers(const void* data, bool half)
      : data_(const_cast<void*>(data)), half_(half) {}

  MUSTER_INLINE void* data() const { return data_; }
  MUSTER_INLINE bool half() const { return half_; }
  MUSTER_INLINE Numbers operator+(int64_t count) const {
    return {static_cast<char*>(data_) + count * (half_ ? 2 : 4), half_};
  }
  MUSTER_INLINE float load(int64_t i) const {
    if (!half_) return static_cast<const float*>(data_)[i];
    return float_of(static_cast<uint32_t>(static_cast<const uint16_t*>(data_)[i]) << 16);
  }
  MUSTER_INLINE void store(int64_t i, float value) const {
    if (!half_) {
      static_cast<float*>(data_)[i] = value;
    } else {
      static_cast<uint16_t*>(data_)[i] = upper_half(value);
    }
  }

 private:
  MUSTER_INLINE static uint16_t upper_half(float value) {
    const uint32_t bits = bits_of(value);
    if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
  }

  void* data_ = nullptr;
  bool half_ = false;
};

inline int64_t bytes_of(int64_t numbers, bool half) {
  return numbers * (half ? 2 : 4);
}

}  // namespace muster::compute::cuda
