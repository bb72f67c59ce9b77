#pragma once

#include "trainer/compute/cuda/kernels/softmax.h"

namespace muster::compute::cuda {

// Returns distance^2 / 2 up to delta, and beyond it the line that goes on there.
MUSTER_INLINE float huber_loss(float distance, float delta) {
  return distance <= delta ? 0.5f * distance * distance : delta * (distance - 0.5f * delta);
}

// Each writes a row's loss and the gradient of the model's output y, both [rows, columns].

// `correct` is 1 where the largest output is the label's, the first of several equal ones.
struct SoftmaxCrossEntropyRows {
  int64_t rows, columns;
  const float* y;
  const int32_t* labels;
  float* dy;
  float* losses;
  float* correct;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t row = block.index();
    const int64_t label = labels[row];
    const float* x = y + row * columns;
    float* d = dy + row * columns;
    const SoftmaxScale scale = exponentials(block, columns, x, d);
    for_block_items(block, columns, [&](int64_t c) {
      const float probability = d[c] * (1.0f / scale.total);
      d[c] = c == label ? probability - 1.0f : probability;
    });
    // The number of outputs that are above the label's, or equal and before it.
    const float before = sum_block_items(block, columns, [&](int64_t c) {
      return x[c] > x[label] || (c < label && x[c] == x[label]) ? 1.0f : 0.0f;
    });
    block.each([&](int64_t thread) {
      if (thread != 0) return;
      losses[row] = ::logf(scale.total) - (x[label] - scale.most);
      correct[row] = before == 0.0f ? 1.0f : 0.0f;
    });
  }
};

struct SquaredErrorRows {
  int64_t rows, columns;
  const float* y;
  const float* targets;
  float* dy;
  float* losses;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t at = block.index() * columns;
    const float scale = 2.0f / static_cast<float>(columns);
    const float total = block.sum([&](int64_t thread) {
      float sum = 0;
      for (int64_t i = at + thread; i < at + columns; i += kBlockThreads) {
        const float difference = y[i] - targets[i];
        dy[i] = difference * scale;
        sum = fma(difference, difference, sum);
      }
      return sum;
    });
    block.each([&](int64_t thread) {
      if (thread == 0) losses[block.index()] = total / static_cast<float>(columns);
    });
  }
};

struct HuberRows {
  int64_t rows, columns;
  const float* y;
  const float* targets;
  float delta;
  float* dy;
  float* losses;

  MUSTER_INLINE Shape shape() const { return {rows}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t at = block.index() * columns;
    const float scale = 1.0f / static_cast<float>(columns);
    const float total = sum_block_items(block, columns, [&](int64_t column) {
      const int64_t i = at + column;
      const float difference = y[i] - targets[i];
      const float distance = ::fabsf(difference);
      dy[i] = scale * (distance <= delta ? difference : ::copysignf(delta, difference));
      return huber_loss(distance, delta);
    });
    block.each([&](int64_t thread) {
      if (thread == 0) losses[block.index()] = total * scale;
    });
  }
};

}  // namespace muster::compute::cuda
