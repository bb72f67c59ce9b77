#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// N neighbouring numbers that a thread loads or stores at once.
template <int N>
struct alignas(sizeof(float) * (N < 4 ? N : 4)) Pack {
  float at[N];
};

// N neighbouring numbers of bfloat16, the first in the lower half of at[0].
template <int N>
struct alignas(2 * N) Halves {
  uint32_t at[N / 2];
};

// An array in a GPU's memory, of floats or, if Half, of bfloat16: the upper half of a float,
// rounded to the nearest, ties to even; NaN stays NaN. The type does not say whether the array may
// be written.
template <bool Half>
class Array {
 public:
  using Element = std::conditional_t<Half, uint16_t, float>;

  MUSTER_INLINE explicit Array(void* data) : data_(static_cast<Element*>(data)) {}

  MUSTER_INLINE float load(int64_t i) const {
    if constexpr (Half) {
      return float_of(static_cast<uint32_t>(data_[i]) << 16);
    } else {
      return data_[i];
    }
  }
  MUSTER_INLINE void store(int64_t i, float value) const {
    if constexpr (Half) {
      data_[i] = upper_half(value);
    } else {
      data_[i] = value;
    }
  }

  // Returns what load() would return after store().
  MUSTER_INLINE static float rounded(float value) {
    if constexpr (Half) {
      return float_of(static_cast<uint32_t>(upper_half(value)) << 16);
    } else {
      return value;
    }
  }

  // The N numbers from i on, N being 1, 4 or 8; i is a multiple of N, and the array is aligned to N
  // numbers, at most to 16 bytes.
  template <int N>
  MUSTER_INLINE Pack<N> load_pack(int64_t i) const {
    static_assert(N == 1 || N == 4 || N == 8);
    if constexpr (N == 1) {
      return {load(i)};
    } else if constexpr (N == 8 && !Half) {
      const auto a = load_pack<4>(i), b = load_pack<4>(i + 4);
      return {a.at[0], a.at[1], a.at[2], a.at[3], b.at[0], b.at[1], b.at[2], b.at[3]};
    } else {
      return unpack(load_raw<N>(i));
    }
  }
  // Raw is a pack in the format of memory; with bfloat16 it needs half as many registers as the
  // pack. unpack() returns the pack.
  template <int N>
  using Raw = std::conditional_t<Half && N != 1, Halves<N>, Pack<N>>;
  template <int N>
  MUSTER_INLINE Raw<N> load_raw(int64_t i) const {
    if constexpr (N == 1) {
      return {load(i)};
    } else {
      return read<Raw<N>>(data_ + i);
    }
  }
  template <int N>
  MUSTER_INLINE static Pack<N> unpack(const Halves<N>& raw) {
    Pack<N> pack;
    MUSTER_UNROLL_ALL
    for (int i = 0; i < N / 2; ++i) {
      pack.at[2 * i] = float_of(raw.at[i] << 16);
      pack.at[2 * i + 1] = float_of(raw.at[i] & 0xFFFF0000u);
    }
    return pack;
  }
  template <int N>
  MUSTER_INLINE static Pack<N> unpack(const Pack<N>& raw) {
    return raw;
  }
  template <int N>
  MUSTER_INLINE void store_pack(int64_t i, const Pack<N>& pack) const {
    static_assert(N == 1 || N == 4 || N == 8);
    if constexpr (N == 1) {
      store(i, pack.at[0]);
    } else if constexpr (N == 8 && Half) {
      write(data_ + i,
            Halves<8>{upper_halves(pack.at[0], pack.at[1]), upper_halves(pack.at[2], pack.at[3]),
                      upper_halves(pack.at[4], pack.at[5]), upper_halves(pack.at[6], pack.at[7])});
    } else if constexpr (N == 8) {
      store_pack<4>(i, {pack.at[0], pack.at[1], pack.at[2], pack.at[3]});
      store_pack<4>(i + 4, {pack.at[4], pack.at[5], pack.at[6], pack.at[7]});
    } else if constexpr (Half) {
      write(data_ + i,
            Halves<4>{upper_halves(pack.at[0], pack.at[1]), upper_halves(pack.at[2], pack.at[3])});
    } else {
      write(data_ + i, pack);
    }
  }

 private:
  // A GPU would fail at a wrong alignment.
  static void check_alignment(const void* at, size_t alignment) {
    if (reinterpret_cast<uintptr_t>(at) % alignment != 0)
      throw std::logic_error("expected a pack of numbers at a multiple of its size");
  }

  // One access on a GPU.
  template <class T>
  MUSTER_INLINE static T read(const void* from) {
#if defined(__CUDA_ARCH__)
    return *static_cast<const T*>(from);
#else
    check_alignment(from, alignof(T));
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
#endif
  }
  template <class T>
  MUSTER_INLINE static void write(void* to, const T& value) {
#if defined(__CUDA_ARCH__)
    *static_cast<T*>(to) = value;
#else
    check_alignment(to, alignof(T));
    std::memcpy(to, &value, sizeof value);
#endif
  }

  MUSTER_INLINE static uint16_t upper_half(float value) {
#if defined(__CUDA_ARCH__)
    uint16_t half;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    const uint32_t bits = bits_of(value);
    if (value != value) return static_cast<uint16_t>(bits >> 16 | 0x40u);
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
#endif
  }
  MUSTER_INLINE static uint32_t upper_halves(float low, float high) {
#if defined(__CUDA_ARCH__)
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    return upper_half(low) | static_cast<uint32_t>(upper_half(high)) << 16;
#endif
  }

  Element* data_;
};

// An array of either format.
class Numbers {
 public:
  Numbers() = default;
  MUSTER_INLINE Numbers(const float* floats) : Numbers(floats, false) {}
  MUSTER_INLINE Numbers(const void* data, bool half)
      : data_(const_cast<void*>(data)), half_(half) {}

  MUSTER_INLINE void* data() const { return data_; }
  MUSTER_INLINE bool half() const { return half_; }
  template <bool Half>
  MUSTER_INLINE Array<Half> as() const {
    return Array<Half>(data_);
  }
  MUSTER_INLINE Numbers operator+(int64_t count) const {
    return {static_cast<char*>(data_) + count * (half_ ? 2 : 4), half_};
  }
  MUSTER_INLINE float load(int64_t i) const {
    return half_ ? as<true>().load(i) : as<false>().load(i);
  }
  MUSTER_INLINE void store(int64_t i, float value) const {
    half_ ? as<true>().store(i, value) : as<false>().store(i, value);
  }
  template <int N>
  MUSTER_INLINE Pack<N> load_pack(int64_t i) const {
    return half_ ? as<true>().load_pack<N>(i) : as<false>().load_pack<N>(i);
  }
  template <int N>
  MUSTER_INLINE void store_pack(int64_t i, const Pack<N>& pack) const {
    half_ ? as<true>().store_pack(i, pack) : as<false>().store_pack(i, pack);
  }

 private:
  void* data_ = nullptr;
  bool half_ = false;
};

inline int64_t bytes_of(int64_t numbers, bool half) {
  return numbers * (half ? 2 : 4);
}

template <int N>
MUSTER_INLINE Pack<N> load_floats(const float* from) {
  return Numbers(from).as<false>().load_pack<N>(0);
}

// A number of columns or channels that is known at compile time.
template <int N>
using Fixed = std::integral_constant<int, N>;

// Returns the number of numbers to load at once from rows of `columns` numbers. Rows without gaps
// in aligned memory are aligned to this number.
MUSTER_INLINE int pack_of(int64_t columns) {
  return columns % 4 == 0 ? 4 : 1;
}

// Returns the N that with_packs<8> chooses for arrays that are both bfloat16 if `half`.
MUSTER_INLINE int wide_pack_of(int64_t columns, bool half) {
  return half && columns % 8 == 0 ? 8 : pack_of(columns);
}
MUSTER_INLINE int wide_pack_of(int64_t columns, const Numbers& a, const Numbers& b) {
  return wide_pack_of(columns, a.half() && b.half());
}

// Calls function(Fixed<N>, a, b). If both arrays have the same format and packs are wide, the types
// of `a` and `b` give the format, so that loads need no decision. N is pack_of(columns) or, for
// bfloat16, HalfPack if it divides `columns`.
template <int HalfPack = 4, class Function>
MUSTER_INLINE void with_packs(int64_t columns, const Numbers& a, const Numbers& b,
                              Function function) {
  if (pack_of(columns) == 1) {
    function(Fixed<1>{}, a, b);
  } else if (a.half() != b.half()) {
    function(Fixed<4>{}, a, b);
  } else if (!a.half()) {
    function(Fixed<4>{}, a.as<false>(), b.as<false>());
  } else if (HalfPack == 8 && wide_pack_of(columns, a, b) == 8) {
    function(Fixed<HalfPack>{}, a.as<true>(), b.as<true>());
  } else {
    function(Fixed<4>{}, a.as<true>(), b.as<true>());
  }
}

}  // namespace muster::compute::cuda
