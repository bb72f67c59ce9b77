#pragma once

#include <type_traits>

#include "trainer/compute/cuda/kernels/activation.h"
#include "trainer/compute/cuda/kernels/four.h"

namespace muster::compute::cuda {

// Small dense layers, for which starting kernels and waiting for memory takes most of the time: so
// there is one kernel for the forward pass and one for the backward pass. The order of sums depends
// on the shapes alone.

constexpr int64_t kMostDenseRows = 64;
// Above this limit, reading a matrix once for every tile costs more time than it saves.
constexpr int64_t kMostDenseMultiplications = int64_t{1} << 25;
// The largest number of features, and of units. With this limit 32 bits hold any index, also an
// index after the end of a matrix.
constexpr int64_t kMostDenseWidth = int64_t{1} << 20;
MUSTER_INLINE bool is_small_dense(int64_t rows, int64_t features, int64_t units) {
  return rows <= kMostDenseRows && features <= kMostDenseWidth && units <= kMostDenseWidth &&
         rows * features * units <= kMostDenseMultiplications;
}

// A product of [rows, inner] and [inner, columns] is cut into tiles, one for a block. Its threads
// are in slices, each of which adds up its share of `inner` for the whole tile; a thread has
// kThreadRows rows and 4 columns of the tile.
struct DenseTile {
  static constexpr int32_t kThreadRows = 4;
  static constexpr int32_t kRowGroups = 2;
  static constexpr int32_t kColumnGroups = 2;
  static constexpr int32_t kRows = kRowGroups * kThreadRows;
  static constexpr int32_t kColumns = kColumnGroups * 4;
  static constexpr int32_t kOutputs = kRows * kColumns;
  static constexpr int32_t kThreads = kBlockThreads;
  static constexpr int32_t kPositions = kRowGroups * kColumnGroups;
  static constexpr int32_t kSlices = kThreads / kPositions;
  // The number of parts in which the slices are added up: one part for each thread and output.
  static constexpr int32_t kParts = kThreads / kOutputs;

  // The sums of all threads are [kThreadRows * 4, kThreads], with gaps that spread simultaneous
  // reads over the banks; the parts lie after the sums.
  static constexpr int32_t kStride = kThreads + kPositions;
  static constexpr int32_t kSums = kThreadRows * 4 * kStride;
  static constexpr int32_t kFloats = kSums + kThreads;
};

// A tile of the gradient of the weights.
struct DenseWeightTile {
  static constexpr int32_t kFeatures = 32;
  static constexpr int32_t kUnits = 64;
  static constexpr int32_t kFloats = kMostDenseRows * (kFeatures + kUnits);
};

MUSTER_INLINE int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}

// A row-major matrix without gaps.
struct DenseMatrix {
  const float* data;
  int32_t rows, columns;

  MUSTER_INLINE bool in_fours() const { return cuda::in_fours(data, columns); }
  // Returns four numbers of a row; zeros after the end of the row, or if there is no such row.
  template <bool aligned>
  MUSTER_INLINE Four load(int32_t row, int32_t column) const {
    return load_four<aligned>(data + (row * columns + column), row < rows ? columns - column : 0);
  }
};

// The left factors of products: a thread first loads several numbers with load(), without waiting,
// and then computes the factors with compute().
struct DenseInput {
  using Loaded = Four;
  DenseMatrix x;

  MUSTER_INLINE int32_t rows() const { return x.rows; }
  MUSTER_INLINE int32_t inner() const { return x.columns; }
  MUSTER_INLINE bool in_fours() const { return x.in_fours(); }
  template <bool aligned>
  MUSTER_INLINE Four load(int32_t row, int32_t column) const {
    return x.load<aligned>(row, column);
  }
  template <int32_t count>
  MUSTER_INLINE void compute(const Four (&loaded)[count], Four (&factors)[count]) const {
    for (int32_t i = 0; i < count; ++i) factors[i] = loaded[i];
  }
};
// dy * activation'(y).
struct DenseSlope {
  struct Loaded {
    Four dy, y;
  };
  DenseMatrix dy, y;
  Activation activation;

  MUSTER_INLINE int32_t rows() const { return dy.rows; }
  MUSTER_INLINE int32_t inner() const { return dy.columns; }
  MUSTER_INLINE bool in_fours() const { return dy.in_fours() && y.in_fours(); }
  template <bool aligned>
  MUSTER_INLINE Loaded load(int32_t row, int32_t column) const {
    return {dy.load<aligned>(row, column), y.load<aligned>(row, column)};
  }
  template <int32_t count>
  MUSTER_INLINE void compute(const Loaded (&loaded)[count], Four (&factors)[count]) const {
    with_slope(activation, [&](auto slope) {
      MUSTER_UNROLL_ALL
      for (int32_t i = 0; i < count; ++i)
        for (int32_t j = 0; j < 4; ++j)
          factors[i].at[j] = slope(loaded[i].y.at[j], loaded[i].dy.at[j]);
    });
  }
};

// A thread's share of a product: 4 columns of left * right, or of left * right', for kThreadRows
// rows. The thread's share is the groups of 4 numbers of `inner` that begin at `first`, `first` +
// kStep, ...
template <int32_t at_once, bool transposed>
struct DenseShare {
  static constexpr int32_t kRows = DenseTile::kThreadRows;
  static constexpr int32_t kStep = DenseTile::kSlices * 4;
  int32_t row, column, first;
  float sums[kRows][4];

  template <class Left>
  MUSTER_INLINE void compute(const Left& left, const DenseMatrix& right) {
    if (!left.in_fours()) return add_up<false, false>(left, right);
    if (!right.in_fours()) return add_up<true, false>(left, right);
    add_up<true, true>(left, right);
  }

 private:
  template <bool left_aligned, bool right_aligned, class Left>
  MUSTER_INLINE void add_up(const Left& left, const DenseMatrix& right) {
    const int32_t inner = left.inner();
    for (int32_t i = 0; i < kRows; ++i)
      for (int32_t j = 0; j < 4; ++j) sums[i][j] = 0;
    for (int32_t begin = first; begin < inner; begin += at_once * kStep) {
      typename Left::Loaded loaded[at_once][kRows];
      Four factors[at_once][4];
      MUSTER_UNROLL_ALL
      for (int32_t n = 0; n < at_once; ++n) {
        const int32_t k = begin + n * kStep;
        // For a row or column after the end, the last one is read and not used.
        for (int32_t i = 0; i < kRows; ++i)
          loaded[n][i] = left.template load<left_aligned>(smaller(row + i, left.rows() - 1), k);
        for (int32_t j = 0; j < 4; ++j) {
          if constexpr (transposed) {
            factors[n][j] = right.load<right_aligned>(smaller(column + j, right.rows - 1), k);
          } else {
            factors[n][j] = right.load<right_aligned>(k + j, column);
          }
        }
      }
      MUSTER_UNROLL_ALL
      for (int32_t n = 0; n < at_once; ++n) {
        if (begin + n * kStep >= inner) break;
        Four values[kRows];
        left.compute(loaded[n], values);
        for (int32_t k = 0; k < 4; ++k)
          for (int32_t i = 0; i < kRows; ++i)
            for (int32_t j = 0; j < 4; ++j)
              sums[i][j] = fma(values[i].at[k],
                               transposed ? factors[n][j].at[k] : factors[n][k].at[j], sums[i][j]);
      }
    }
  }
};

// Computes the block's tile of left * right, or of left * right'; `index` is the number of the
// tile. For each element, prior(row, column) is called before the computation, and finish(row,
// column, sum, prior's result) after it.
template <int32_t at_once, bool transposed, class Block, class Left, class Prior, class Finish>
MUSTER_INLINE void dense_product(Block& block, float* memory, int32_t index, const Left& left,
                                 const DenseMatrix& right, Prior prior, Finish finish) {
  using Tile = DenseTile;
  const int32_t rows = left.rows();
  const int32_t columns = transposed ? right.rows : right.columns;
  const int32_t row_tiles = tiles_of(rows, Tile::kRows);
  const auto first_row = [=](int32_t position) {
    return index % row_tiles * Tile::kRows + position / Tile::kColumnGroups * Tile::kThreadRows;
  };
  const auto first_column = [=](int32_t position) {
    return index / row_tiles * Tile::kColumns + position % Tile::kColumnGroups * 4;
  };
  // An output is given by a position in the tile and one of a thread's numbers at this position.
  const auto with_output = [=](int32_t output, auto use) {
    const int32_t position = output % Tile::kPositions, number = output / Tile::kPositions;
    const int32_t row = first_row(position) + number / 4;
    const int32_t column = first_column(position) + number % 4;
    if (output < Tile::kOutputs && row < rows && column < columns) use(row, column);
  };
  auto priors = block.template locals<float>();

  block.each([&](int64_t one) {
    const auto thread = static_cast<int32_t>(one);
    with_output(thread, [&](int32_t row, int32_t column) { priors[one] = prior(row, column); });
    const int32_t position = thread % Tile::kPositions;
    DenseShare<at_once, transposed> share;
    share.row = first_row(position);
    share.column = first_column(position);
    share.first = thread / Tile::kPositions * 4;
    share.compute(left, right);
    for (int32_t i = 0; i < Tile::kThreadRows; ++i)
      for (int32_t j = 0; j < 4; ++j)
        memory[(i * 4 + j) * Tile::kStride + thread] = share.sums[i][j];
  });
  float* parts = memory + Tile::kSums;
  block.each([&](int64_t one) {
    constexpr int32_t kPartSlices = Tile::kSlices / Tile::kParts;
    const auto thread = static_cast<int32_t>(one);
    const int32_t output = thread % Tile::kOutputs, part = thread / Tile::kOutputs;
    const float* from = memory + output / Tile::kPositions * Tile::kStride +
                        part * kPartSlices * Tile::kPositions + output % Tile::kPositions;
    float sum = 0;
    for (int32_t slice = 0; slice < kPartSlices; ++slice) sum += from[slice * Tile::kPositions];
    parts[thread] = sum;
  });
  block.each([&](int64_t thread) {
    with_output(static_cast<int32_t>(thread), [&](int32_t row, int32_t column) {
      float sum = 0;
      for (int32_t part = 0; part < Tile::kParts; ++part)
        sum += parts[part * Tile::kOutputs + thread];
      finish(row, column, sum, priors[thread]);
    });
  });
}

// y = activation(x w + bias), where bias may be null.
struct DenseForward {
  int32_t rows, features, units;
  const float* x;
  const float* w;
  const float* bias;
  Activation activation;
  float* y;

  MUSTER_INLINE Shape shape() const {
    return {tiles_of(rows, DenseTile::kRows) * tiles_of(units, DenseTile::kColumns)};
  }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    constexpr int32_t kAtOnce = 2;
    float* memory = block.template shared<DenseTile::kFloats>();
    dense_product<kAtOnce, false>(
        block, memory, static_cast<int32_t>(block.index()), DenseInput{{x, rows, features}},
        {w, features, units},
        [&](int32_t, int32_t column) { return bias == nullptr ? 0.0f : bias[column]; },
        [&](int32_t row, int32_t column, float sum, float added) {
          y[row * units + column] = activated(activation, sum + added);
        });
  }
};

// With g = dy * activation'(y): dw = x' g, db = the sums of g over the rows, and dx (+)= g w'. A
// null result is not computed; if dw is null, db must be null.
struct DenseBackward {
  int32_t rows, features, units;
  Activation activation;
  const float* x;
  const float* w;
  const float* y;
  const float* dy;
  float* dw;
  float* db;
  float* dx;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return {input_blocks() + weight_blocks()}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    constexpr int32_t kFloats = DenseTile::kFloats > DenseWeightTile::kFloats
                                    ? DenseTile::kFloats
                                    : DenseWeightTile::kFloats;
    float* memory = block.template shared<kFloats>();
    const auto index = static_cast<int32_t>(block.index());
    // The slope of a linear layer needs no y; dy, which is read instead, is needed anyway.
    const float* outputs = activation == Activation::linear ? dy : y;
    const DenseSlope g{{dy, rows, units}, {outputs, rows, units}, activation};
    if (index < input_blocks()) return input_gradient(block, memory, index, g);
    weight_gradient(block, memory, index - input_blocks(), g);
  }

 private:
  // The bias is treated as the weights of one more feature, which is always 1.
  MUSTER_INLINE int32_t weight_rows() const { return features + (db == nullptr ? 0 : 1); }
  MUSTER_INLINE int32_t input_blocks() const {
    if (dx == nullptr) return 0;
    return tiles_of(rows, DenseTile::kRows) * tiles_of(features, DenseTile::kColumns);
  }
  MUSTER_INLINE int32_t weight_blocks() const {
    if (dw == nullptr) return 0;
    return tiles_of(weight_rows(), DenseWeightTile::kFeatures) *
           tiles_of(units, DenseWeightTile::kUnits);
  }

  template <class Block>
  MUSTER_INLINE void input_gradient(Block& block, float* memory, int32_t index,
                                    const DenseSlope& g) const {
    constexpr int32_t kAtOnce = 1;
    dense_product<kAtOnce, true>(
        block, memory, index, g, {w, features, units},
        [&](int32_t row, int32_t column) {
          return accumulate ? dx[row * features + column] : 0.0f;
        },
        [&](int32_t row, int32_t column, float sum, float before) {
          dx[row * features + column] = sum + before;
        });
  }

  // The tile's factors are in the shared memory. A thread has kEach features and every 32nd unit,
  // so that neighbouring threads write next to each other.
  template <class Block>
  MUSTER_INLINE void weight_gradient(Block& block, float* memory, int32_t index,
                                     const DenseSlope& g) const {
    using Tile = DenseWeightTile;
    constexpr int32_t kLanes = 32;
    constexpr int32_t kEach = Tile::kFeatures * kLanes / kBlockThreads;
    static_assert(kEach == 4 && Tile::kUnits == 2 * kLanes);
    const int32_t unit_tiles = tiles_of(units, Tile::kUnits);
    const int32_t first_feature = index / unit_tiles * Tile::kFeatures;
    const int32_t first_unit = index % unit_tiles * Tile::kUnits;
    float* inputs = memory;                                     // [rows, kFeatures]
    float* slopes = memory + kMostDenseRows * Tile::kFeatures;  // [rows, kUnits]
    const DenseInput in{{x, rows, features}};
    const bool aligned = in.in_fours() && g.in_fours();
    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      // With up to 32 rows, only half as much is loaded.
      const auto load = [&](auto most_rows) {
        if (aligned) {
          load_factors<true, most_rows>(thread, in, first_feature, inputs, g, first_unit, slopes);
        } else {
          load_factors<false, most_rows>(thread, in, first_feature, inputs, g, first_unit, slopes);
        }
      };
      constexpr int32_t kMost = kMostDenseRows;
      if (rows <= kMost / 2) {
        load(std::integral_constant<int32_t, kMost / 2>{});
      } else {
        load(std::integral_constant<int32_t, kMost>{});
      }
    });
    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      const int32_t feature = thread / kLanes * kEach, unit = thread % kLanes;
      float sums[kEach][2] = {};
      for (int32_t row = 0; row < rows; ++row) {
        const Four input = load_four<true>(inputs + row * Tile::kFeatures + feature);
        const float* slope = slopes + row * Tile::kUnits + unit;
        for (int32_t i = 0; i < kEach; ++i)
          for (int32_t j = 0; j < 2; ++j)
            sums[i][j] = fma(input.at[i], slope[j * kLanes], sums[i][j]);
      }
      for (int32_t i = 0; i < kEach; ++i) {
        const int32_t row = first_feature + feature + i;
        if (row >= weight_rows()) break;
        float* to = row < features ? dw + row * units : db;
        for (int32_t j = 0; j < 2; ++j) {
          const int32_t column = first_unit + unit + j * kLanes;
          if (column < units) to[column] = sums[i][j];
        }
      }
    });
  }

  template <bool aligned, int32_t most_rows>
  MUSTER_INLINE void load_factors(int32_t thread, const DenseInput& in, int32_t first_feature,
                                  float* inputs, const DenseSlope& g, int32_t first_unit,
                                  float* slopes) const {
    constexpr int32_t kFeatureFours = DenseWeightTile::kFeatures / 4;
    constexpr int32_t kUnitFours = DenseWeightTile::kUnits / 4;
    constexpr int32_t kInputs = most_rows * kFeatureFours / kBlockThreads;
    constexpr int32_t kSlopes = most_rows * kUnitFours / kBlockThreads;
    constexpr int32_t kThreads = kBlockThreads;
    Four input[kInputs];
    DenseSlope::Loaded loaded[kSlopes];
    Four slope[kSlopes];
    MUSTER_UNROLL_ALL
    for (int32_t n = 0; n < kInputs; ++n) {
      const int32_t item = thread + n * kThreads, row = item / kFeatureFours;
      const int32_t feature = first_feature + item % kFeatureFours * 4;
      input[n] = in.load<aligned>(row, feature);
      for (int32_t j = 0; j < 4; ++j)
        if (feature + j == features) input[n].at[j] = 1.0f;
    }
    MUSTER_UNROLL_ALL
    for (int32_t n = 0; n < kSlopes; ++n) {
      const int32_t item = thread + n * kThreads, row = item / kUnitFours;
      const int32_t unit = first_unit + item % kUnitFours * 4;
      loaded[n] = g.load<aligned>(row, unit);
    }
    MUSTER_UNROLL_ALL
    for (int32_t n = 0; n < kInputs; ++n)
      store_four(inputs + (thread + n * kThreads) * 4, input[n]);
    g.compute(loaded, slope);
    MUSTER_UNROLL_ALL
    for (int32_t n = 0; n < kSlopes; ++n)
      store_four(slopes + (thread + n * kThreads) * 4, slope[n]);
  }
};

}  // namespace muster::compute::cuda
