#pragma once

#include "trainer/compute/cuda/kernels/activation.h"
#include "trainer/compute/cuda/kernels/four.h"

namespace muster::compute::cuda {

// Dense layers with little to compute, which take as long as kernels take to begin and to wait for
// memory: one kernel for the forward pass and one for the backward pass. Sums are in an order that
// depends on the shapes alone.

constexpr int64_t kMostDenseRows = 64;
// Above this, reading a matrix once for every tile takes longer than what is saved. 32 bits hold
// any index.
constexpr int64_t kMostDenseMultiplications = int64_t{1} << 25;
MUSTER_INLINE bool is_small_dense(int64_t rows, int64_t features, int64_t units) {
  return rows <= kMostDenseRows && rows * features <= kMostDenseMultiplications / units;
}

// A product of [rows, inner] and [inner, columns] is cut into tiles, one for a block. Its threads
// are in slices, each of which adds up its share of `inner` for the whole tile; a thread has
// kThreadRows rows and 4 columns of it.
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
  // The slices are added up in so many parts, one for a thread and an output.
  static constexpr int32_t kParts = kThreads / kOutputs;

  // The sums of all threads are [kThreadRows * 4, kThreads], with gaps that spread what is read at
  // once over the banks; the parts lie behind them.
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

MUSTER_INLINE int32_t tiles_of(int32_t items, int32_t tile) {
  return (items + tile - 1) / tile;
}
MUSTER_INLINE int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}

// A row-major matrix without gaps.
struct DenseMatrix {
  const float* data;
  int32_t rows, columns;
  bool in_fours;

  MUSTER_INLINE DenseMatrix(const float* at, int32_t row_count, int32_t column_count)
      : data(at),
        rows(row_count),
        columns(column_count),
        in_fours(column_count % 4 == 0 && fits_four(at)) {}

  // Returns four numbers of a row, and zeros beyond its end.
  MUSTER_INLINE Four load(int32_t row, int32_t column) const {
    const float* p = data + (row * columns + column);
    Four four{};
    if (in_fours) {
      if (column < columns) four = load_four(p);
    } else {
      for (int32_t j = 0; j < 4; ++j)
        if (column + j < columns) four.at[j] = p[j];
    }
    return four;
  }
};

// The left factors of products have these members: load() reads, and value() computes from what has
// been read, so that a thread can read much before it waits.
struct DenseInput {
  using Loaded = Four;
  DenseMatrix x;

  MUSTER_INLINE int32_t rows() const { return x.rows; }
  MUSTER_INLINE int32_t inner() const { return x.columns; }
  MUSTER_INLINE Four load(int32_t row, int32_t column) const { return x.load(row, column); }
  MUSTER_INLINE Four value(const Four& loaded) const { return loaded; }
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
  MUSTER_INLINE Loaded load(int32_t row, int32_t column) const {
    Loaded loaded{dy.load(row, column), {}};
    if (activation != Activation::linear) loaded.y = y.load(row, column);
    return loaded;
  }
  MUSTER_INLINE Four value(const Loaded& loaded) const {
    Four g;
    for (int32_t j = 0; j < 4; ++j)
      g.at[j] = activation_slope(activation, loaded.y.at[j], loaded.dy.at[j]);
    return g;
  }
};

// Computes the tile of left * right, or of left * right', that is the block's, where `index` counts
// the tiles. It calls prior(row, column) for each element before it computes, and finish(row,
// column, sum, prior's result) after it.
template <int32_t at_once, bool transposed, class Block, class Left, class Prior, class Finish>
MUSTER_INLINE void dense_product(Block& block, float* memory, int32_t index, const Left& left,
                                 const DenseMatrix& right, Prior prior, Finish finish) {
  using Tile = DenseTile;
  constexpr int32_t kRows = Tile::kThreadRows;
  constexpr int32_t kStep = Tile::kSlices * 4;
  const int32_t rows = left.rows(), inner = left.inner();
  const int32_t columns = transposed ? right.rows : right.columns;
  const int32_t row_tiles = tiles_of(rows, Tile::kRows);
  const auto first_row = [=](int32_t position) {
    return index % row_tiles * Tile::kRows + position / Tile::kColumnGroups * kRows;
  };
  const auto first_column = [=](int32_t position) {
    return index / row_tiles * Tile::kColumns + position % Tile::kColumnGroups * 4;
  };
  // An output is a position in the tile and one of the numbers that a thread has there.
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
    const int32_t row = first_row(position), column = first_column(position);
    float sums[kRows][4] = {};
    for (int32_t begin = thread / Tile::kPositions * 4; begin < inner; begin += at_once * kStep) {
      typename Left::Loaded loaded[at_once][kRows];
      Four factors[at_once][4];
      MUSTER_UNROLL
      for (int32_t n = 0; n < at_once; ++n) {
        const int32_t k = begin + n * kStep;
        // What is read of the last row or column in place of one beyond it is not used.
        for (int32_t i = 0; i < kRows; ++i) loaded[n][i] = left.load(smaller(row + i, rows - 1), k);
        for (int32_t j = 0; j < 4; ++j) {
          if constexpr (transposed) {
            factors[n][j] = right.load(smaller(column + j, columns - 1), k);
          } else {
            factors[n][j] = k + j < inner ? right.load(k + j, column) : Four{};
          }
        }
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < at_once; ++n) {
        if (begin + n * kStep >= inner) break;
        Four values[kRows];
        for (int32_t i = 0; i < kRows; ++i) values[i] = left.value(loaded[n][i]);
        for (int32_t k = 0; k < 4; ++k)
          for (int32_t i = 0; i < kRows; ++i)
            for (int32_t j = 0; j < 4; ++j)
              sums[i][j] = fma(values[i].at[k],
                               transposed ? factors[n][j].at[k] : factors[n][k].at[j], sums[i][j]);
      }
    }
    for (int32_t i = 0; i < kRows; ++i)
      for (int32_t j = 0; j < 4; ++j) memory[(i * 4 + j) * Tile::kStride + thread] = sums[i][j];
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

// With g = dy * activation'(y): dw = x' g, db = the sums of g over the rows, and dx (+)= g w'. What
// is null is not computed; db is null if dw is.
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
    const DenseSlope g{{dy, rows, units}, {y, rows, units}, activation};
    if (index < input_blocks()) return input_gradient(block, memory, index, g);
    weight_gradient(block, memory, index - input_blocks(), g);
  }

 private:
  // The bias is the weights of one feature more, which is always 1.
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

  // All rows of the tile's factors are in the shared memory, and a thread has 4 units.
  template <class Block>
  MUSTER_INLINE void weight_gradient(Block& block, float* memory, int32_t index,
                                     const DenseSlope& g) const {
    using Tile = DenseWeightTile;
    constexpr int32_t kThreads = kBlockThreads;
    constexpr int32_t kFeatureFours = Tile::kFeatures / 4, kUnitFours = Tile::kUnits / 4;
    constexpr int32_t kInputLoads = kMostDenseRows * kFeatureFours / kThreads;
    constexpr int32_t kSlopeLoads = kMostDenseRows * kUnitFours / kThreads;
    constexpr int32_t kEach = Tile::kFeatures * kUnitFours / kThreads;  // features of a thread
    const int32_t column_tiles = tiles_of(units, Tile::kUnits);
    const int32_t first_feature = index / column_tiles * Tile::kFeatures;
    const int32_t first_unit = index % column_tiles * Tile::kUnits;
    const DenseMatrix in(x, rows, features);
    float* inputs = memory;                                     // [rows, kFeatures]
    float* slopes = memory + kMostDenseRows * Tile::kFeatures;  // [rows, kUnits]

    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      Four input[kInputLoads];
      DenseSlope::Loaded slope[kSlopeLoads];
      MUSTER_UNROLL
      for (int32_t n = 0; n < kInputLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kFeatureFours < rows)
          input[n] = in.load(item / kFeatureFours, first_feature + item % kFeatureFours * 4);
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kSlopeLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kUnitFours < rows)
          slope[n] = g.load(item / kUnitFours, first_unit + item % kUnitFours * 4);
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kInputLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kFeatureFours >= rows) break;
        for (int32_t j = 0; j < 4; ++j)
          if (first_feature + item % kFeatureFours * 4 + j == features) input[n].at[j] = 1.0f;
        store_four(inputs + item * 4, input[n]);
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kSlopeLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kUnitFours < rows) store_four(slopes + item * 4, g.value(slope[n]));
      }
    });
    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      const int32_t feature = thread / kUnitFours * kEach, unit = thread % kUnitFours * 4;
      float sums[kEach][4] = {};
      for (int32_t row = 0; row < rows; ++row) {
        const Four slope = load_four(slopes + row * Tile::kUnits + unit);
        for (int32_t i = 0; i < kEach; ++i)
          for (int32_t j = 0; j < 4; ++j)
            sums[i][j] = fma(inputs[row * Tile::kFeatures + feature + i], slope.at[j], sums[i][j]);
      }
      for (int32_t i = 0; i < kEach; ++i)
        store_weights(first_feature + feature + i, first_unit + unit, sums[i]);
    });
  }

  MUSTER_INLINE void store_weights(int32_t feature, int32_t unit, const float* sums) const {
    if (feature >= weight_rows()) return;
    float* to = (feature < features ? dw + feature * units : db) + unit;
    if (unit + 4 <= units && fits_four(to)) {
      store_four(to, {sums[0], sums[1], sums[2], sums[3]});
    } else {
      for (int32_t j = 0; j < 4; ++j)
        if (unit + j < units) to[j] = sums[j];
    }
  }
};

}  // namespace muster::compute::cuda
