#pragma once

#include "trainer/compute/cuda/kernels/column_sums.h"
#include "trainer/compute/cuda/numbers.h"

namespace muster::compute::cuda {

// Batch normalization of z, [rows, columns] without gaps, and a rectifier behind it:
//   y = min(max(z * scale + shift, low), high).
// All other arrays have one number for each column, because the statistics are over all rows. The
// formulas are those of cpu/kernels/normalized.inc.

struct Bounds {
  float low, high;
  static constexpr Bounds none() { return {-INFINITY, INFINITY}; }

  // Returns the number within the bounds that is nearest to x; NaN if x is NaN.
  MUSTER_INLINE float limit(float x) const {
#if defined(__CUDA_ARCH__)
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(low));
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(high));
    return x;
#else
    return minimum(high, maximum(low, x));
#endif
  }
};

// Normalizes packs of numbers of some columns, as a Reader does.
template <int N>
struct ColumnReader {
  Pack<N> scale, shift;
  Bounds bounds;

  MUSTER_INLINE Pack<N> operator()(Pack<N> z) const {
    MUSTER_UNROLL_ALL
    for (int i = 0; i < N; ++i) z.at[i] = bounds.limit(fma(z.at[i], scale.at[i], shift.at[i]));
    return z;
  }
};

// Reads y, or z itself if there is no scale.
struct Reader {
  Numbers z;
  const float* scale = nullptr;
  const float* shift = nullptr;
  Bounds bounds{};

  // For columns [column, column + N).
  template <int N>
  MUSTER_INLINE ColumnReader<N> at(int column) const {
    if (scale != nullptr)
      return {load_floats<N>(scale + column), load_floats<N>(shift + column), bounds};
    ColumnReader<N> same{{}, {}, Bounds::none()};
    for (float& one : same.scale.at) one = 1;
    return same;
  }
  MUSTER_INLINE float load(int64_t i, int column) const {
    return at<1>(column)(z.load_pack<1>(i)).at[0];
  }
  MUSTER_INLINE Reader operator+(int64_t count) const { return {z + count, scale, shift, bounds}; }
};

// out = the numbers from the reader.
struct ReadValues {
  int64_t rows, columns;
  Reader in;
  Numbers out;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns / pack_of(columns)); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_packs<8>(columns, in.z, out, [&]<int N>(Fixed<N>, auto from, auto to) {
      for_packs<N>(block, rows, columns, [&](int i, int column) {
        to.template store_pack<N>(i, in.at<N>(column)(from.template load_pack<N>(i)));
      });
    });
  }
};

// Reads values as ReadValues does, into rows of `stride` numbers in `out`, padded with zeros.
struct ReadRows {
  int64_t rows, columns;
  Reader in;
  Numbers out;
  int64_t stride;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * stride); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_packs<1>(block, rows, stride, [&](int i, int column) {
      const int row = i / static_cast<int>(stride);
      out.store(i, column < columns ? in.load(row * columns + column, column) : 0.0f);
    });
  }
};

// The mean of each part's rows, and after the means the sums of squared distances from the mean:
// [2, parts, columns].
struct PartStatistics {
  static constexpr int kBlocksAtOnce = 4;

  int64_t rows, columns;
  Numbers z;
  float* parts;

  MUSTER_INLINE Cut cut() const { return {rows, columns, wide_pack_of(columns, z, z)}; }
  MUSTER_INLINE Shape shape() const { return cut().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_packs<8>(columns, z, z, [&]<int N>(Fixed<N>, auto from, auto) {
      const Cut cut = this->cut();
      const int width = static_cast<int>(columns);
      // Distances from the part's first row are about as small as distances from the mean.
      const int index = static_cast<int>(block.index());
      const int first = cut.first_row(index) * width;
      sum_part<N, 2>(
          block, index, cut,
          [&](int column) {
            return [=, pivot = from.template load_pack<N>(first + column)](int row, Pack<N>* sums) {
              const Pack<N> raw = from.template load_pack<N>(row * width + column);
              MUSTER_UNROLL_ALL
              for (int i = 0; i < N; ++i) {
                const float d = raw.at[i] - pivot.at[i];
                sums[0].at[i] += d;
                sums[1].at[i] = fma(d, d, sums[1].at[i]);
              }
            };
          },
          [&](int part, int column, auto total) {
            const float shift = total(0) * (1.0f / static_cast<float>(cut.rows_of(part)));
            parts[part * columns + column] = from.load(first + column) + shift;
            parts[(cut.parts + part) * columns + column] = fnma(shift, total(0), total(1));
          });
    });
  }
};

// Numbers for each column that normalization computes, and reads in the backward pass.
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

// Joins the parts' statistics. The gradients of the moving statistics are `samples` times the mean,
// and `samples` times the variance of the population (with Bessel's correction).
struct JoinStatistics {
  int64_t rows, samples, columns;
  int pack;  // of the parts' kernel
  const float* parts;
  float epsilon;
  const float* gamma;
  const float* beta;
  ColumnScales scales;
  float* mean_gradient;
  float* variance_gradient;

  MUSTER_INLINE Shape shape() const { return blocks_for_columns(columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const Cut cut(rows, columns, pack);
    const int count = cut.parts, width = static_cast<int>(columns);
    // Distances are measured from a value near the mean, as in a part. Here this value is the mean
    // of the first part.
    join_parts<2>(
        block, count, width,
        [&](float* sums, int part, int c) {
          const float d = parts[part * width + c] - parts[c];
          const float of_part = static_cast<float>(cut.rows_of(part)) * d;
          sums[0] += of_part;
          sums[1] += fma(of_part, d, parts[(count + part) * width + c]);
        },
        [&](int c, auto total) {
          const float n = static_cast<float>(rows), all = static_cast<float>(samples);
          const float sum = total(0), shift = sum * (1.0f / n);
          const float variance = fnma(shift, sum, total(1)) * (1.0f / n), mean = parts[c] + shift;
          write_scales(scales, c, mean, variance, epsilon, gamma[c], beta[c]);
          mean_gradient[c] = all * mean;
          variance_gradient[c] = (rows > 1 ? all * n / (n - 1.0f) : all) * variance;
        });
  }
};

// Computes the scales from given statistics.
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
    for_items(block, columns, [&](uint32_t c) {
      write_scales(scales, c, mean[c], variance[c], epsilon, gamma[c], beta[c]);
    });
  }
};

// g of an element: dy where y is inside the bounds, else 0.
MUSTER_INLINE float inner_gradient(float z, float dy, float scale, float shift, Bounds bounds) {
  const float y = fma(z, scale, shift);
  return where_positive(y - bounds.low, where_positive(bounds.high - y, dy));
}

// Each part's sums of g, and after them the sums of g (z - mean): [2, parts, columns].
struct PartGradients {
  static constexpr int kBlocksAtOnce = 4;

  int64_t rows, columns;
  Numbers z, dy;
  ColumnScales scales;
  Bounds bounds;
  float* parts;

  MUSTER_INLINE Cut cut() const { return {rows, columns, wide_pack_of(columns, z, dy)}; }
  MUSTER_INLINE Shape shape() const { return cut().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_packs<8>(columns, z, dy, [&]<int N>(Fixed<N>, auto from, auto gradient) {
      const Cut cut = this->cut();
      const int width = static_cast<int>(columns);
      sum_part<N, 2>(
          block, static_cast<int>(block.index()), cut,
          [&](int column) {
            return [=, limits = bounds, scale = load_floats<N>(scales.scale + column),
                    shift = load_floats<N>(scales.shift + column),
                    mean = load_floats<N>(scales.mean + column)](int row, Pack<N>* sums) {
              const Pack<N> raw = from.template load_pack<N>(row * width + column);
              const Pack<N> d = gradient.template load_pack<N>(row * width + column);
              MUSTER_UNROLL_ALL
              for (int i = 0; i < N; ++i) {
                const float g =
                    inner_gradient(raw.at[i], d.at[i], scale.at[i], shift.at[i], limits);
                sums[0].at[i] += g;
                sums[1].at[i] = fma(g, raw.at[i] - mean.at[i], sums[1].at[i]);
              }
            };
          },
          [&](int part, int column, auto total) {
            parts[part * columns + column] = total(0);
            parts[(cut.parts + part) * columns + column] = total(1);
          });
    });
  }
};

// Computes the gradients of gamma and beta, and the numbers for the gradient of z.
struct JoinGradients {
  int64_t rows, columns;
  int pack;  // of the parts' kernel
  const float* parts;
  ColumnScales scales;
  float* dgamma;
  float* dbeta;

  MUSTER_INLINE Shape shape() const { return blocks_for_columns(columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const int count = Cut(rows, columns, pack).parts, width = static_cast<int>(columns);
    join_parts<2>(
        block, count, width,
        [&](float* sums, int part, int c) {
          sums[0] += parts[part * width + c];
          sums[1] += parts[(count + part) * width + c];
        },
        [&](int c, auto total) {
          const float share = 1.0f / static_cast<float>(rows), sum = total(0);
          const float scale = scales.scale[c], inverse = scales.inverse[c];
          const float gamma = total(1) * inverse, slope = scale * inverse * gamma * share;
          dbeta[c] = sum;
          dgamma[c] = gamma;
          scales.slope[c] = slope;
          scales.offset[c] = scale * sum * share - scales.mean[c] * slope;
        });
  }
};

// dz (+)= the gradient of z from dy. If the statistics are treated as constants, there is no slope.
struct NormalizedGradient {
  int64_t rows, columns;
  Numbers z, dy;
  ColumnScales scales;
  Bounds bounds;
  Numbers dz;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns / pack_of(columns)); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    with_packs<8>(columns, z, dy, [&]<int N>(Fixed<N>, auto from, auto gradient) {
      for_packs<N>(block, rows, columns, [&](int i, int c) {
        const Pack<N> raw = from.template load_pack<N>(i);
        const Pack<N> d = gradient.template load_pack<N>(i);
        Pack<N> out = accumulate ? dz.load_pack<N>(i) : Pack<N>{};
        const bool sloping = scales.slope != nullptr;
        const Pack<N> scale = load_floats<N>(scales.scale + c);
        const Pack<N> shift = load_floats<N>(scales.shift + c);
        const Pack<N> slope = sloping ? load_floats<N>(scales.slope + c) : Pack<N>{};
        const Pack<N> offset = sloping ? load_floats<N>(scales.offset + c) : Pack<N>{};
        MUSTER_UNROLL_ALL
        for (int j = 0; j < N; ++j) {
          const float g = inner_gradient(raw.at[j], d.at[j], scale.at[j], shift.at[j], bounds);
          const float through = fma(raw.at[j], slope.at[j], offset.at[j]);
          out.at[j] = fma(g, scale.at[j], -through) + out.at[j];
        }
        dz.store_pack<N>(i, out);
      });
    });
  }
};

}  // namespace muster::compute::cuda
