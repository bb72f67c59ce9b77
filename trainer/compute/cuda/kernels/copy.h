#pragma once

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// out[i] = in[i] * scale + offset, for i < count.
struct ConvertBytes {
  int64_t count;
  const uint8_t* in;
  float scale, offset;
  float* out;

  MUSTER_INLINE Shape shape() const { return blocks_for(count); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, count,
              [&](uint32_t i) { out[i] = fma(static_cast<float>(in[i]), scale, offset); });
  }
};
struct ConvertFloats {
  int64_t count;
  const float* in;
  float scale, offset;
  float* out;

  MUSTER_INLINE Shape shape() const { return blocks_for(count); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, count, [&](uint32_t i) { out[i] = fma(in[i], scale, offset); });
  }
};

// out[r, c] (+)= in[r, c].
struct Copy {
  int64_t rows, columns;
  const float* in;
  int64_t ldi;
  float* out;
  int64_t ldo;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](uint32_t i) {
      const uint32_t row = i / static_cast<uint32_t>(columns);
      const uint32_t column = i % static_cast<uint32_t>(columns);
      float& to = out[row * ldo + column];
      const float from = in[row * ldi + column];
      to = accumulate ? from + to : from;
    });
  }
};

}  // namespace muster::compute::cuda
