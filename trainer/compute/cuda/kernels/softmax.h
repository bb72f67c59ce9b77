#pragma once

#include "trainer/compute/cuda/kernels/activation.h"

namespace muster::compute::cuda {

// The two numbers for a row's softmax: the row's largest element, and the sum of exp(x - largest).
struct SoftmaxScale {
  float most, total;
};

// Writes exp(x - largest) to `out`, which may not be x.
template <class Block>
MUSTER_INLINE SoftmaxScale exponentials(Block& block, int64_t columns, const float* x, float* out) {
  const float most = block.most([&](int64_t thread) {
    float largest = thread < columns ? x[thread] : x[0];
    for (int64_t c = thread; c < columns; c += kBlockThreads) largest = maximum(largest, x[c]);
    return largest;
  });
  const float total = block.sum([&](int64_t thread) {
    float sum = 0;
    for (int64_t c = thread; c < columns; c += kBlockThreads) {
      out[c] = exponential(x[c] - most);
      sum += out[c];
    }
    return sum;
  });
  return {most, total};
}

// y = softmax(x), row by row.
struct Softmax {
  int64_t rows, columns;
  const float* x;
  float* y;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    float* out = y + block.index() * columns;
    const SoftmaxScale scale = exponentials(block, columns, x + block.index() * columns, out);
    for_block_items(block, columns, [&](int64_t c) { out[c] *= 1.0f / scale.total; });
  }
};

// dx (+)= y (dy - sum(y dy)), row by row.
struct SoftmaxGradient {
  int64_t rows, columns;
  const float* y;
  const float* dy;
  float* dx;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t at = block.index() * columns;
    const float inner = block.sum([&](int64_t thread) {
      float sum = 0;
      for (int64_t c = thread; c < columns; c += kBlockThreads)
        sum = fma(y[at + c], dy[at + c], sum);
      return sum;
    });
    for_block_items(block, columns, [&](int64_t c) {
      const float d = y[at + c] * (dy[at + c] - inner);
      dx[at + c] = accumulate ? d + dx[at + c] : d;
    });
  }
};

}  // namespace muster::compute::cuda
