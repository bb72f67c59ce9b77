#pragma once

// The vector type of trainer/host/kernels/simd.h with a single lane, for the threads of a GPU and
// for the host's simulation of them. With it the formulas in trainer/compute/formulas are compiled
// for both, and give the same bits as those CPU kernels that fuse multiply and add.

#include <stdint.h>

#include <bit>
#include <cmath>

#include "common/inline.h"

namespace muster::compute::cuda {
namespace {

using V = float;
constexpr int64_t kLanes = 1;

MUSTER_INLINE V zero() {
  return 0.0f;
}
MUSTER_INLINE V broadcast(float x) {
  return x;
}
// Stands for the only lane.
struct Whole {};
MUSTER_INLINE V load(const float* p, Whole = {}) {
  return *p;
}
MUSTER_INLINE void store(float* p, V v, Whole = {}) {
  *p = v;
}
MUSTER_INLINE V fma(V a, V b, V c) {
  return ::fmaf(a, b, c);
}
MUSTER_INLINE V fnma(V a, V b, V c) {
  return ::fmaf(-a, b, c);
}
MUSTER_INLINE V square_root(V a) {
  return ::sqrtf(a);
}
// maximum and minimum return b if either is NaN.
MUSTER_INLINE V maximum(V a, V b) {
  return a > b ? a : b;
}
MUSTER_INLINE V minimum(V a, V b) {
  return a < b ? a : b;
}
MUSTER_INLINE V where_positive(V condition, V a) {
  return condition > 0.0f ? a : 0.0f;
}
MUSTER_INLINE V round_nearest(V a) {
  return ::rintf(a);
}
MUSTER_INLINE float float_of(uint32_t bits) {
#if defined(__CUDA_ARCH__)
  return __uint_as_float(bits);
#else
  return std::bit_cast<float>(bits);
#endif
}
MUSTER_INLINE uint32_t bits_of(float x) {
#if defined(__CUDA_ARCH__)
  return __float_as_uint(x);
#else
  return std::bit_cast<uint32_t>(x);
#endif
}
// Returns 2^a for integral a in the normal range; anything for NaN.
MUSTER_INLINE V power_of_two(V a) {
  const int32_t exponent = a == a ? static_cast<int32_t>(a) : 0;
  return float_of(static_cast<uint32_t>(exponent + 127) << 23);
}
// Returns 1 / a to a few percent, from the exponent and mantissa as integers.
MUSTER_INLINE V rough_reciprocal(V a) {
  return float_of(0x7EF311C7u - bits_of(a));
}

}  // namespace
}  // namespace muster::compute::cuda
