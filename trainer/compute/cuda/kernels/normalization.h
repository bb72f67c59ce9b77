#pragma once

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// Batch normalization of [rows, columns]: the statistics of a column are over all rows.

// From the sums of a batch: mean and 1 / sqrt(variance + epsilon), and `samples` times the mean and
// the variance, which are the gradients of the moving statistics. The variance there is that of the
// population, by Bessel's correction.
struct FinishStatistics {
  int64_t rows, samples, columns;
  const float* sums;
  const float* squares;  // of the distances from the mean
  float epsilon;
  float* mean;
  float* inverse;
  float* mean_gradient;
  float* variance_gradient;

  MUSTER_INLINE Shape shape() const { return blocks_for(columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const float share = 1.0f / static_cast<float>(rows), count = static_cast<float>(rows);
    const float all = static_cast<float>(samples);
    const float corrected = rows > 1 ? all * count / (count - 1.0f) : all;
    for_items(block, columns, [&](int64_t c) {
      const float variance = squares[c] * share;
      mean[c] = sums[c] * share;
      inverse[c] = 1.0f / square_root(variance + epsilon);
      mean_gradient[c] = all * mean[c];
      variance_gradient[c] = corrected * variance;
    });
  }
};

// inverse = 1 / sqrt(variance + epsilon).
struct InverseDeviation {
  int64_t columns;
  const float* variance;
  float epsilon;
  float* inverse;

  MUSTER_INLINE Shape shape() const { return blocks_for(columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, columns,
              [&](int64_t c) { inverse[c] = 1.0f / square_root(variance[c] + epsilon); });
  }
};

// y = (x - mean) inverse gamma + beta.
struct Normalize {
  int64_t rows, columns;
  const float* x;
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* beta;
  float* y;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](int64_t i) {
      const int64_t c = i % columns;
      y[i] = fma(x[i] - mean[c], inverse[c] * gamma[c], beta[c]);
    });
  }
};

// dx (+)= the gradient through the batch's statistics; dbeta and dgamma are the sums of dy and of
// dy (x - mean) inverse.
struct NormalizeGradient {
  int64_t rows, columns;
  const float* x;
  const float* dy;
  const float* mean;
  const float* inverse;
  const float* gamma;
  const float* dbeta;
  const float* dgamma;
  float* dx;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const float share = 1.0f / static_cast<float>(rows);
    for_items(block, rows * columns, [&](int64_t i) {
      const int64_t c = i % columns;
      const float centred = dy[i] - dbeta[c] * share;
      const float d =
          inverse[c] * gamma[c] * fnma(x[i] - mean[c], dgamma[c] * share * inverse[c], centred);
      dx[i] = accumulate ? d + dx[i] : d;
    });
  }
};

// dx (+)= dy gamma inverse: the statistics count as constants.
struct ScaleGradient {
  int64_t rows, columns;
  const float* dy;
  const float* inverse;
  const float* gamma;
  float* dx;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](int64_t i) {
      const int64_t c = i % columns;
      const float d = dy[i] * (inverse[c] * gamma[c]);
      dx[i] = accumulate ? d + dx[i] : d;
    });
  }
};

}  // namespace muster::compute::cuda
