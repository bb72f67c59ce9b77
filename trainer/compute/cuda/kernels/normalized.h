#pragma once

#include "trainer/compute/cuda/kernels/column_sums.h"
#include "trainer/compute/cuda/numbers.h"

namespace muster::compute::cuda {

// Batch normalization of z, [rows, columns] without gaps, and a rectifier behind it:
//   y = min(max(z * scale + shift, low), high).
// Everything else has one number for each column: the statistics are over all rows. The formulas
// are those of cpu/kernels/normalized.inc.

struct Bounds {
  float low, high;
  static constexpr Bounds none() { return {-INFINITY, INFINITY}; }
};

// Reads y, or z itself if there is no scale.
struct Reader {
  Numbers z;
  const float* scale = nullptr;
  const float* shift = nullptr;
  Bounds bounds{};

  MUSTER_INLINE float load(int64_t i, int64_t column) const {
    const float raw = z.load(i);
    if (scale == nullptr) return raw;
    // In this order a NaN stays a NaN.
    return minimum(bounds.high, maximum(bounds.low, fma(raw, scale[column], shift[column])));
  }
  MUSTER_INLINE Reader operator+(int64_t count) const { return {z + count, scale, shift, bounds}; }
};

// out = what the reader reads.
struct ReadValues {
  int64_t rows, columns;
  Reader in;
  Numbers out;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](int64_t i) { out.store(i, in.load(i, i % columns)); });
  }
};

// The mean of each part's rows, and behind these the sums of squared distances from it:
// [2, parts, columns].
struct PartStatistics {
  int64_t rows, columns;
  Numbers z;
  float* parts;

  MUSTER_INLINE Shape shape() const { return blocks_for(parts_of(rows) * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_parts(block, rows, columns, [&](int64_t part, int64_t column, int64_t begin, int64_t end) {
      // Distances from the first row are as small as those from the mean.
      const float pivot = z.load(begin * columns + column);
      float sum = 0, squares = 0;
      for (int64_t r = begin; r < end; ++r) {
        const float d = z.load(r * columns + column) - pivot;
        sum += d;
        squares = fma(d, d, squares);
      }
      const float shift = sum * (1.0f / static_cast<float>(end - begin));
      parts[part * columns + column] = pivot + shift;
      parts[(parts_of(rows) + part) * columns + column] = fnma(shift, sum, squares);
    });
  }
};

// Normalization computes these numbers of each column, and reads them in the backward pass.
struct ColumnScales {
  float* mean;
  float* inverse;  // 1 / sqrt(variance + epsilon)
  float* scale;
  float* shift;
  float* slope;  // dz = g * scale - z * slope - offset, where g is dy inside the bounds, else 0
  float* offset;
};

MUSTER_INLINE void write_scales(const ColumnScales& to, int64_t c, float mean, float variance,
                                float epsilon, float gamma, float beta) {
  const float inverse = 1.0f / square_root(variance + epsilon);
  const float scale = gamma * inverse;
  to.mean[c] = mean;
  to.inverse[c] = inverse;
  to.scale[c] = scale;
  to.shift[c] = beta - mean * scale;
}

// Joins the parts' statistics. The gradients of the moving statistics are `samples` times the mean
// and the variance, which is that of the population there, by Bessel's correction.
struct JoinStatistics {
  int64_t rows, samples, columns;
  const float* parts;
  float epsilon;
  const float* gamma;
  const float* beta;
  ColumnScales scales;
  float* mean_gradient;
  float* variance_gradient;

  MUSTER_INLINE Shape shape() const { return {columns}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t c = block.index(), count = parts_of(rows);
    const auto rows_of = [&](int64_t part) {
      return static_cast<float>(part + 1 < count ? kPartRows : rows - part * kPartRows);
    };
    const float share = 1.0f / static_cast<float>(rows);
    const auto sum_of = [&](auto one) { return sum_block_items(block, count, one); };
    const float pivot = parts[c];
    const float mean = pivot + share * sum_of([&](int64_t part) {
                                 return rows_of(part) * (parts[part * columns + c] - pivot);
                               });
    const float variance = share * sum_of([&](int64_t part) {
                             const float d = parts[part * columns + c] - mean;
                             return fma(rows_of(part) * d, d, parts[(count + part) * columns + c]);
                           });
    const float all = static_cast<float>(samples), n = static_cast<float>(rows);
    block.each([&](int64_t thread) {
      if (thread != 0) return;
      write_scales(scales, c, mean, variance, epsilon, gamma[c], beta[c]);
      mean_gradient[c] = all * mean;
      variance_gradient[c] = (rows > 1 ? all * n / (n - 1.0f) : all) * variance;
    });
  }
};

// The scales of given statistics.
struct FixedScales {
  int64_t columns;
  const float* mean;
  const float* variance;
  float epsilon;
  const float* gamma;
  const float* beta;
  ColumnScales scales;

  MUSTER_INLINE Shape shape() const { return blocks_for(columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, columns, [&](int64_t c) {
      write_scales(scales, c, mean[c], variance[c], epsilon, gamma[c], beta[c]);
    });
  }
};

// g of an element: dy where y is inside the bounds, else 0.
MUSTER_INLINE float inner_gradient(float z, float dy, float scale, float shift, Bounds bounds) {
  const float y = fma(z, scale, shift);
  return where_positive(y - bounds.low, where_positive(bounds.high - y, dy));
}

// Each part's sums of g, and behind these those of g (z - mean): [2, parts, columns].
struct PartGradients {
  int64_t rows, columns;
  Numbers z, dy;
  ColumnScales scales;
  Bounds bounds;
  float* parts;

  MUSTER_INLINE Shape shape() const { return blocks_for(parts_of(rows) * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_parts(block, rows, columns, [&](int64_t part, int64_t c, int64_t begin, int64_t end) {
      const float scale = scales.scale[c], shift = scales.shift[c], mean = scales.mean[c];
      float sum = 0, product = 0;
      for (int64_t r = begin; r < end; ++r) {
        const float raw = z.load(r * columns + c);
        const float g = inner_gradient(raw, dy.load(r * columns + c), scale, shift, bounds);
        sum += g;
        product = fma(g, raw - mean, product);
      }
      parts[part * columns + c] = sum;
      parts[(parts_of(rows) + part) * columns + c] = product;
    });
  }
};

// The gradients of gamma and beta, and what the gradient of z needs.
struct JoinGradients {
  int64_t rows, columns;
  const float* parts;
  ColumnScales scales;
  float* dgamma;
  float* dbeta;

  MUSTER_INLINE Shape shape() const { return {columns}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int64_t c = block.index(), count = parts_of(rows);
    const float sum = sum_of_parts(block, count, columns, parts, c);
    const float product = sum_of_parts(block, count, columns, parts + count * columns, c);
    const float share = 1.0f / static_cast<float>(rows);
    block.each([&](int64_t thread) {
      if (thread != 0) return;
      const float scale = scales.scale[c], inverse = scales.inverse[c];
      const float gamma = product * inverse, slope = scale * inverse * gamma * share;
      dbeta[c] = sum;
      dgamma[c] = gamma;
      scales.slope[c] = slope;
      scales.offset[c] = scale * sum * share - scales.mean[c] * slope;
    });
  }
};

// dz (+)= the gradient of z from dy. Where the statistics count as constants there is no slope.
struct NormalizedGradient {
  int64_t rows, columns;
  Numbers z, dy;
  ColumnScales scales;
  Bounds bounds;
  Numbers dz;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](int64_t i) {
      const int64_t c = i % columns;
      const float raw = z.load(i), scale = scales.scale[c];
      const float g = inner_gradient(raw, dy.load(i), scale, scales.shift[c], bounds);
      const float through =
          scales.slope == nullptr ? 0.0f : fma(raw, scales.slope[c], scales.offset[c]);
      const float d = fma(g, scale, -through);
      dz.store(i, accumulate ? d + dz.load(i) : d);
    });
  }
};

}  // namespace muster::compute::cuda
