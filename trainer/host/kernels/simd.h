#pragma once

// One vector type for the instruction set that the file is compiled for. Only the translation units
// of folders named kernels include it. They must not use inline code of the standard library: the
// linker could choose its AVX-512 copy for all callers.

#include <stdint.h>

#if defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#endif

// Declares functions that files for other kinds of processors include too.
#define MUSTER_INLINE inline

namespace {

#if defined(__AVX512F__)

using V = __m512;
using Part = __mmask16;
using Bits = __m512i;
constexpr int64_t kLanes = 16;
inline Part part(int64_t n) {
  return static_cast<Part>((1u << n) - 1u);
}
inline V zero() {
  return _mm512_setzero_ps();
}
inline V broadcast(float x) {
  return _mm512_set1_ps(x);
}
inline V load(const float* p) {
  return _mm512_loadu_ps(p);
}
inline V load(const float* p, Part m) {
  return _mm512_maskz_loadu_ps(m, p);
}
inline void store(float* p, V v) {
  _mm512_storeu_ps(p, v);
}
inline void store(float* p, V v, Part m) {
  _mm512_mask_storeu_ps(p, m, v);
}
inline V fma(V a, V b, V c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline V fnma(V a, V b, V c) {
  return _mm512_fnmadd_ps(a, b, c);
}
inline V square_root(V a) {
  return _mm512_sqrt_ps(a);
}
// maximum and minimum return b if either is NaN.
inline V maximum(V a, V b) {
  return _mm512_max_ps(a, b);
}
inline V minimum(V a, V b) {
  return _mm512_min_ps(a, b);
}
inline V where_positive(V condition, V a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(condition, zero(), _CMP_GT_OQ), a);
}
inline V where_equal(V x, V y, V a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, y, _CMP_EQ_OQ), a);
}
inline V where_unequal(V x, V y, V a) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ), a);
}
inline V keep(V a, Part m, V other) {
  return _mm512_mask_mov_ps(other, m, a);
}
inline int64_t nonzeros(V a) {
  return __builtin_popcount(_mm512_cmp_ps_mask(a, zero(), _CMP_NEQ_UQ));
}
inline V from_bytes(const uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline V round_nearest(V a) {
  return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// Returns 2^a for integral a in the normal range.
inline V power_of_two(V a) {
  const __m512i i = _mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_set1_epi32(127));
  return _mm512_castsi512_ps(_mm512_slli_epi32(i, 23));
}
// Returns `bits`, with `bit` set in the lanes in which a is not zero.
inline Bits or_nonzero(Bits bits, V a, uint32_t bit) {
  const __mmask16 mask = _mm512_cmp_ps_mask(a, zero(), _CMP_NEQ_UQ);
  return _mm512_mask_or_epi32(bits, mask, bits, _mm512_set1_epi32(static_cast<int>(bit)));
}
inline void store_bits(uint32_t* p, Bits bits) {
  _mm512_storeu_si512(p, bits);
}
// Returns 1 / a to a few percent, from the exponent and mantissa as integers.
inline V rough_reciprocal(V a) {
  return _mm512_castsi512_ps(
      _mm512_sub_epi32(_mm512_set1_epi32(0x7EF311C7), _mm512_castps_si512(a)));
}

#elif defined(__AVX2__)

using V = __m256;
using Part = __m256i;
using Bits = __m256i;
constexpr int64_t kLanes = 8;
inline Part part(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline V zero() {
  return _mm256_setzero_ps();
}
inline V broadcast(float x) {
  return _mm256_set1_ps(x);
}
inline V load(const float* p) {
  return _mm256_loadu_ps(p);
}
inline V load(const float* p, Part m) {
  return _mm256_maskload_ps(p, m);
}
inline void store(float* p, V v) {
  _mm256_storeu_ps(p, v);
}
inline void store(float* p, V v, Part m) {
  _mm256_maskstore_ps(p, m, v);
}
inline V fma(V a, V b, V c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline V fnma(V a, V b, V c) {
  return _mm256_fnmadd_ps(a, b, c);
}
inline V square_root(V a) {
  return _mm256_sqrt_ps(a);
}
inline V maximum(V a, V b) {
  return _mm256_max_ps(a, b);
}
inline V minimum(V a, V b) {
  return _mm256_min_ps(a, b);
}
inline V where_positive(V condition, V a) {
  return _mm256_and_ps(_mm256_cmp_ps(condition, zero(), _CMP_GT_OQ), a);
}
inline V where_equal(V x, V y, V a) {
  return _mm256_and_ps(_mm256_cmp_ps(x, y, _CMP_EQ_OQ), a);
}
inline V where_unequal(V x, V y, V a) {
  return _mm256_and_ps(_mm256_cmp_ps(x, y, _CMP_NEQ_UQ), a);
}
inline V keep(V a, Part m, V other) {
  return _mm256_blendv_ps(other, a, _mm256_castsi256_ps(m));
}
inline int64_t nonzeros(V a) {
  return __builtin_popcount(
      static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, zero(), _CMP_NEQ_UQ))));
}
inline V from_bytes(const uint8_t* p) {
  return _mm256_cvtepi32_ps(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
}
inline V round_nearest(V a) {
  return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline V power_of_two(V a) {
  const __m256i i = _mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127));
  return _mm256_castsi256_ps(_mm256_slli_epi32(i, 23));
}
inline Bits or_nonzero(Bits bits, V a, uint32_t bit) {
  const __m256i mask = _mm256_castps_si256(_mm256_cmp_ps(a, zero(), _CMP_NEQ_UQ));
  return _mm256_or_si256(bits, _mm256_and_si256(mask, _mm256_set1_epi32(static_cast<int>(bit))));
}
inline void store_bits(uint32_t* p, Bits bits) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), bits);
}
inline V rough_reciprocal(V a) {
  return _mm256_castsi256_ps(
      _mm256_sub_epi32(_mm256_set1_epi32(0x7EF311C7), _mm256_castps_si256(a)));
}

#else

// Four lanes in plain C++ with GCC's vectors, for any architecture.
typedef float V __attribute__((vector_size(16)));
typedef int32_t VI __attribute__((vector_size(16)));
using Part = int64_t;
typedef int32_t Bits __attribute__((vector_size(16)));
constexpr int64_t kLanes = 4;
inline Part part(int64_t n) {
  return n;
}
inline V zero() {
  return V{};
}
inline V broadcast(float x) {
  return V{x, x, x, x};
}
inline V load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline V load(const float* p, Part m) {
  V v{};
  for (int64_t i = 0; i < m; ++i) v[i] = p[i];
  return v;
}
inline void store(float* p, V v) {
  __builtin_memcpy(p, &v, sizeof v);
}
inline void store(float* p, V v, Part m) {
  for (int64_t i = 0; i < m; ++i) p[i] = v[i];
}
inline V fma(V a, V b, V c) {
  return a * b + c;
}
inline V fnma(V a, V b, V c) {
  return c - a * b;
}
inline V square_root(V a) {
#if defined(__SSE2__)
  return _mm_sqrt_ps(a);
#else
  return V{__builtin_sqrtf(a[0]), __builtin_sqrtf(a[1]), __builtin_sqrtf(a[2]),
           __builtin_sqrtf(a[3])};
#endif
}
inline V maximum(V a, V b) {
  return a > b ? a : b;
}
inline V minimum(V a, V b) {
  return a < b ? a : b;
}
inline V where_positive(V condition, V a) {
  return condition > 0.0f ? a : V{};
}
inline V where_equal(V x, V y, V a) {
  return x == y ? a : V{};
}
inline V where_unequal(V x, V y, V a) {
  return x == y ? V{} : a;
}
inline V keep(V a, Part m, V other) {
  for (int64_t i = 0; i < m; ++i) other[i] = a[i];
  return other;
}
inline int64_t nonzeros(V a) {
  return (a[0] != 0) + (a[1] != 0) + (a[2] != 0) + (a[3] != 0);
}
inline V from_bytes(const uint8_t* p) {
  return V{float(p[0]), float(p[1]), float(p[2]), float(p[3])};
}
inline V round_nearest(V a) {
  return V{__builtin_rintf(a[0]), __builtin_rintf(a[1]), __builtin_rintf(a[2]),
           __builtin_rintf(a[3])};
}
inline V power_of_two(V a) {
  const VI i = (__builtin_convertvector(a, VI) + 127) << 23;
  return reinterpret_cast<V>(i);
}
inline Bits or_nonzero(Bits bits, V a, uint32_t bit) {
  const int32_t b = static_cast<int32_t>(bit);
  return bits | ((a != V{}) & VI{b, b, b, b});
}
inline void store_bits(uint32_t* p, Bits bits) {
  __builtin_memcpy(p, &bits, sizeof bits);
}
inline V rough_reciprocal(V a) {
  return reinterpret_cast<V>(VI{0x7EF311C7, 0x7EF311C7, 0x7EF311C7, 0x7EF311C7} -
                             reinterpret_cast<VI>(a));
}

#endif

// The lanes of a V as integers, for the operators of GCC's vectors.
typedef uint32_t Lanes32 __attribute__((vector_size(sizeof(V))));

// Returns the number of each lane: 0, 1, 2 and so on.
constexpr uint32_t kNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline Lanes32 lane_numbers() {
  Lanes32 numbers;
  __builtin_memcpy(&numbers, kNumbers, sizeof numbers);
  return numbers;
}

// bfloat16: the upper half of a float. It may lie at any address.
using Half = uint16_t;
inline void copy_halves(Half* to, const Half* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) __builtin_memcpy(to + i, from + i, sizeof(Half));
}

// Rounds the bits of a float, or of each lane of a vector, to bfloat16: to the nearest, ties to
// even. Adding just under half of the last kept place, and one more if that place is odd, carries
// exactly when that rounds up. A NaN could carry into infinity.
template <typename Bits32>
inline Bits32 upper_half(Bits32 bits) {
  const Bits32 upper = bits >> 16;
  const Bits32 rounded = (bits + 0x7fffu + (upper & 1u)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? (upper | 0x40u) : rounded;
}

#if defined(__AVX512F__)
inline V load(const Half* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
inline int64_t lanes_of(Part m) {
  return __builtin_popcount(m);
}
#elif defined(__AVX2__)
inline V load(const Half* p) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
inline int64_t lanes_of(Part m) {
  return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(m))));
}
#else
inline V load(const Half* p) {
  typedef Half Halves __attribute__((vector_size(8)));
  Halves halves;
  __builtin_memcpy(&halves, p, sizeof halves);
  return (V)(__builtin_convertvector(halves, Lanes32) << 16);
}
inline int64_t lanes_of(Part m) {
  return m;
}
#endif
inline V load(const Half* p, Part m) {
  Half lanes[kLanes] = {};
  copy_halves(lanes, p, lanes_of(m));
  return load(lanes);
}

#if defined(__AVX512BF16__)
// Pairs of bfloat16 lie in the 32 bits of a lane, the first of a pair in the lower half. Returns c
// + the products of the pairs' first numbers + the products of their second numbers.
inline V dot_pairs(V a, V b, V c) {
  return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
}
// Returns the lanes of both as bfloat16, those of `first` in the lower half.
inline __m512i halves_of(V first, V second) {
  return (__m512i)_mm512_cvtne2ps_pbh(second, first);
}
// Returns pairs of the numbers at the same place in the two halves.
inline V pairs_of(__m512i halves) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, halves));
}
// Stores the first `count` of kLanes numbers.
inline void store_halves(Half* p, __m256i halves, int64_t count) {
  _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << count) - 1u), halves);
}
// Stores the first `count` lanes, at most kLanes, as bfloat16. Returns all lanes after rounding.
inline V store_rounded(Half* p, V v, int64_t count) {
  const auto halves = (__m256i)_mm512_cvtneps_pbh(v);
  store_halves(p, halves, count);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}
#else
// Stores the lower halves of the first `count` lanes.
inline void store_lower_halves(Half* p, Lanes32 lanes, int64_t count) {
#if defined(__AVX512F__)
  const auto mask = static_cast<__mmask16>((1u << count) - 1u);
  _mm512_mask_cvtepi32_storeu_epi16(p, mask, (__m512i)lanes);
#else
  Half some[kLanes];
#if defined(__AVX2__)
  const __m256i twice = _mm256_packus_epi32((__m256i)lanes, (__m256i)lanes);
  const __m256i packed = _mm256_permute4x64_epi64(twice, 0b1000);  // lanes 0 to 7 first
  _mm_storeu_si128(reinterpret_cast<__m128i*>(count == kLanes ? p : some),
                   _mm256_castsi256_si128(packed));
  if (count == kLanes) return;
#else
  for (int64_t i = 0; i < kLanes; ++i) some[i] = static_cast<Half>(lanes[i]);
#endif
  copy_halves(p, some, count);
#endif
}
inline V store_rounded(Half* p, V v, int64_t count) {
  const Lanes32 halves = upper_half((Lanes32)v);
  store_lower_halves(p, halves, count);
  return (V)(halves << 16);
}
#endif

// Stands for all lanes in place of a Part. Functions that take either are compiled for both.
struct Whole {};
template <typename Number>
inline V load(const Number* p, Whole) {
  return load(p);
}
inline void store(float* p, V v, Whole) {
  store(p, v);
}

// Calls function(r, c, Whole or Part) for the vectors of a block of rows and columns.
template <typename Function>
inline void for_vectors(int64_t rows, int64_t columns, Function function) {
  const int64_t whole = columns / kLanes * kLanes;
  const Part rest = part(columns - whole);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < whole; c += kLanes) function(r, c, Whole{});
    if (whole < columns) function(r, whole, rest);
  }
}

// Calls function(Yes or No): a condition that is the same for all iterations of a loop is decided
// before the loop.
struct Yes {
  static constexpr bool kValue = true;
};
struct No {
  static constexpr bool kValue = false;
};
template <typename Function>
inline void decide(bool condition, Function function) {
  if (condition) {
    function(Yes{});
  } else {
    function(No{});
  }
}

// Returns the sum of the lanes in a fixed order: halves folded onto each other.
#if defined(__AVX2__)
inline float sum_lanes(__m128 v) {
  const __m128 two = _mm_add_ps(v, _mm_movehl_ps(v, v));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float sum_lanes(__m256 v) {
  return sum_lanes(_mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1)));
}
#if defined(__AVX512F__)
inline float sum_lanes(__m512 v) {
  return sum_lanes(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1)));
}
#endif
#else
inline float sum_lanes(V v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}
#endif

inline float max_lanes(V v) {
  float lane[kLanes];
  store(lane, v);
  float most = lane[0];
  for (int64_t i = 1; i < kLanes; ++i) most = lane[i] > most ? lane[i] : most;
  return most;
}

template <typename Number>
inline V load_from(const Number* p, int64_t left) {
  return left >= kLanes ? load(p) : load(p, part(left));
}
inline void store_to(float* p, V v, int64_t left) {
  if (left >= kLanes) {
    store(p, v);
  } else {
    store(p, v, part(left));
  }
}

}  // namespace
