#pragma once

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// Sums over the rows of a matrix, for each column, in two kernels, so that their order depends on
// the shape alone: the first writes [parts, columns] sums of kPartRows rows each, the second adds
// up the parts.
constexpr int64_t kPartRows = 256;
MUSTER_INLINE int64_t parts_of(int64_t rows) {
  return (rows + kPartRows - 1) / kPartRows;
}

// Calls one(part, column, begin, end) for each part's rows [begin, end).
template <class Block, class One>
MUSTER_INLINE void for_parts(Block& block, int64_t rows, int64_t columns, One one) {
  for_items(block, parts_of(rows) * columns, [&](int64_t i) {
    const int64_t part = i / columns;
    const int64_t end = (part + 1) * kPartRows;
    one(part, i % columns, part * kPartRows, end < rows ? end : rows);
  });
}

// Sums of x.
struct ColumnSums {
  int64_t rows, columns;
  const float* x;
  float* parts;

  MUSTER_INLINE Shape shape() const { return blocks_for(parts_of(rows) * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_parts(block, rows, columns, [&](int64_t part, int64_t column, int64_t begin, int64_t end) {
      float sum = 0;
      for (int64_t r = begin; r < end; ++r) sum += x[r * columns + column];
      parts[part * columns + column] = sum;
    });
  }
};

// Returns the sum of in[part, column] over the parts.
template <class Block>
MUSTER_INLINE float sum_of_parts(Block& block, int64_t parts, int64_t columns, const float* in,
                                 int64_t column) {
  return sum_block_items(block, parts, [&](int64_t part) { return in[part * columns + column]; });
}

// out[c] = the sum of in[part, c] over the parts.
struct SumParts {
  int64_t parts, columns;
  const float* in;
  float* out;

  MUSTER_INLINE Shape shape() const { return {columns}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const float sum = sum_of_parts(block, parts, columns, in, block.index());
    block.each([&](int64_t thread) {
      if (thread == 0) out[block.index()] = sum;
    });
  }
};

}  // namespace muster::compute::cuda
