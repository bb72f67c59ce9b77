#pragma once

#include "trainer/compute/cuda/kernels/activation.h"
#include "trainer/compute/cuda/kernels/four.h"

namespace muster::compute::cuda {

// Dense layers of few rows, which take as long as a kernel's beginning and its waiting for memory:
// one kernel for the forward pass and one for the backward pass. Sums are in an order that depends
// on the shapes alone.

constexpr int64_t kMostDenseRows = 64;
// Of features and of units, so that 32 bits hold an index of a value.
constexpr int64_t kMostDenseWidth = int64_t{1} << 24;

// How the work is cut into blocks. A product of [rows, inner] and [inner, columns] is cut into
// tiles of kRows x kColumns. The threads of a block are in kSlices slices, each of which adds up
// its share of `inner` for the whole tile: a thread has kThreadRows rows and 4 columns.
template <int32_t thread_rows, int32_t row_groups, int32_t column_groups, int32_t at_once,
          int32_t weight_rows>
struct DenseTile {
  static constexpr int32_t kThreadRows = thread_rows;
  static constexpr int32_t kColumnGroups = column_groups;
  static constexpr int32_t kPositions = row_groups * column_groups;
  static constexpr int32_t kSlices = kBlockThreads / kPositions;
  static constexpr int32_t kRows = row_groups * thread_rows;
  static constexpr int32_t kColumns = column_groups * 4;
  // The groups of 4 numbers of `inner` that a thread of the forward pass reads at once.
  static constexpr int32_t kAtOnce = at_once;
  // The gradient of the weights is cut into tiles of kWeightRows x kWeightColumns.
  static constexpr int32_t kWeightRows = weight_rows;
  static constexpr int32_t kWeightColumns = 64;

  // The sums of all threads: [kThreadRows * 4, kBlockThreads], with gaps that spread those of a
  // slice over the banks.
  static constexpr int32_t kStride = kBlockThreads + kPositions;
  static constexpr int32_t kSums = kThreadRows * 4 * kStride;
  static constexpr int32_t kProductFloats = kSums + kBlockThreads;
  static constexpr int32_t kWeightFloats = kMostDenseRows * (kWeightRows + kWeightColumns);
};
// The first gives more blocks, the second reads less for each multiplication.
using SmallTile = DenseTile<4, 2, 2, 2, 32>;
using LargeTile = DenseTile<8, 4, 4, 1, 64>;
constexpr int64_t kMostSmallTileWeights = int64_t{1} << 20;

MUSTER_INLINE int32_t tiles_of(int64_t items, int32_t tile) {
  return static_cast<int32_t>((items + tile - 1) / tile);
}
MUSTER_INLINE int32_t smaller(int32_t a, int32_t b) {
  return a < b ? a : b;
}

// A row-major matrix without gaps.
struct DenseMatrix {
  const float* data;
  int32_t rows, columns;
  bool in_fours;

  MUSTER_INLINE DenseMatrix(const float* at, int64_t row_count, int64_t column_count)
      : data(at),
        rows(static_cast<int32_t>(row_count)),
        columns(static_cast<int32_t>(column_count)),
        in_fours(columns % 4 == 0 && fits_four(at)) {}

  // Returns four numbers of a row, and zeros beyond its end.
  MUSTER_INLINE Four load(int32_t row, int32_t column) const {
    // A layer has at most 2^32 weights.
    const float* p = data + (static_cast<uint32_t>(row) * static_cast<uint32_t>(columns) +
                             static_cast<uint32_t>(column));
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

// Computes the tile that begins at (first_row, first_column) of left * right, or of left * right'.
// It calls prior(row, column) for each element of the tile before it computes, and
// finish(row, column, sum, prior's result) after it.
template <class Tile, int32_t kAtOnce, bool kTransposed, class Block, class Left, class Prior,
          class Finish>
MUSTER_INLINE void dense_product(Block& block, float* memory, int32_t first_row,
                                 int32_t first_column, const Left& left, const DenseMatrix& right,
                                 Prior prior, Finish finish) {
  constexpr int32_t kThreads = kBlockThreads;
  constexpr int32_t kRows = Tile::kThreadRows;
  constexpr int32_t kOutputs = Tile::kRows * Tile::kColumns;
  constexpr int32_t kEach = kOutputs > kThreads ? kOutputs / kThreads : 1;  // of a thread
  constexpr int32_t kParts = kOutputs < kThreads ? kThreads / kOutputs : 1;
  constexpr int32_t kPartSlices = Tile::kSlices / kParts;
  const int32_t rows = left.rows(), inner = left.inner();
  const int32_t columns = kTransposed ? right.rows : right.columns;
  // An output is a position in the tile and one of the numbers that a thread there has.
  const auto with_output = [=](int32_t output, auto use) {
    const int32_t position = output % Tile::kPositions, number = output / Tile::kPositions;
    const int32_t row = first_row + position / Tile::kColumnGroups * kRows + number / 4;
    const int32_t column = first_column + position % Tile::kColumnGroups * 4 + number % 4;
    if (row < rows && column < columns) use(row, column);
  };
  struct Priors {
    float at[kEach];
  };
  auto priors = block.template locals<Priors>();

  block.each([&](int64_t one) {
    const auto thread = static_cast<int32_t>(one);
    MUSTER_UNROLL
    for (int32_t n = 0; n < kEach; ++n) {
      priors[one].at[n] = 0;
      if (thread >= kOutputs) continue;
      with_output(thread + n * kThreads,
                  [&](int32_t row, int32_t column) { priors[one].at[n] = prior(row, column); });
    }
    const int32_t position = thread % Tile::kPositions;
    const int32_t row = first_row + position / Tile::kColumnGroups * kRows;
    const int32_t column = first_column + position % Tile::kColumnGroups * 4;
    float sums[kRows][4] = {};
    for (int32_t begin = thread / Tile::kPositions * 4; begin < inner;
         begin += kAtOnce * Tile::kSlices * 4) {
      typename Left::Loaded loaded[kAtOnce][kRows];
      Four factors[kAtOnce][4];
      MUSTER_UNROLL
      for (int32_t n = 0; n < kAtOnce; ++n) {
        const int32_t k = begin + n * Tile::kSlices * 4;
        // What is read beyond the matrix's end is not used.
        for (int32_t i = 0; i < kRows; ++i) loaded[n][i] = left.load(smaller(row + i, rows - 1), k);
        for (int32_t j = 0; j < 4; ++j) {
          if constexpr (kTransposed) {
            factors[n][j] = right.load(smaller(column + j, columns - 1), k);
          } else {
            factors[n][j] = k + j < inner ? right.load(k + j, column) : Four{};
          }
        }
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kAtOnce; ++n) {
        Four values[kRows];
        for (int32_t i = 0; i < kRows; ++i) values[i] = left.value(loaded[n][i]);
        for (int32_t k = 0; k < 4; ++k)
          for (int32_t i = 0; i < kRows; ++i)
            for (int32_t j = 0; j < 4; ++j)
              sums[i][j] = fma(values[i].at[k],
                               kTransposed ? factors[n][j].at[k] : factors[n][k].at[j], sums[i][j]);
      }
    }
    for (int32_t i = 0; i < kRows; ++i)
      for (int32_t j = 0; j < 4; ++j) memory[(i * 4 + j) * Tile::kStride + thread] = sums[i][j];
  });

  const auto sum_of_slices = [=](int32_t output, int32_t first_slice) {
    const float* from = memory + output / Tile::kPositions * Tile::kStride +
                        first_slice * Tile::kPositions + output % Tile::kPositions;
    float sum = 0;
    for (int32_t slice = 0; slice < kPartSlices; ++slice) sum += from[slice * Tile::kPositions];
    return sum;
  };
  if constexpr (kParts == 1) {
    block.each([&](int64_t thread) {
      MUSTER_UNROLL
      for (int32_t n = 0; n < kEach; ++n) {
        const int32_t output = static_cast<int32_t>(thread) + n * kThreads;
        with_output(output, [&](int32_t row, int32_t column) {
          finish(row, column, sum_of_slices(output, 0), priors[thread].at[n]);
        });
      }
    });
  } else {
    float* parts = memory + Tile::kSums;
    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      parts[thread] = sum_of_slices(thread % kOutputs, thread / kOutputs * kPartSlices);
    });
    block.each([&](int64_t thread) {
      if (thread >= kOutputs) return;
      float sum = 0;
      for (int32_t part = 0; part < kParts; ++part) sum += parts[part * kOutputs + thread];
      with_output(static_cast<int32_t>(thread), [&](int32_t row, int32_t column) {
        finish(row, column, sum, priors[thread].at[0]);
      });
    });
  }
}

// y = activation(x w + bias), where bias may be null.
template <class Tile>
struct DenseForward {
  int64_t rows, features, units;
  const float* x;
  const float* w;
  const float* bias;
  Activation activation;
  float* y;

  MUSTER_INLINE Shape shape() const {
    return {int64_t{tiles_of(rows, Tile::kRows)} * tiles_of(units, Tile::kColumns)};
  }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    float* memory = block.template shared<Tile::kProductFloats>();
    const auto index = static_cast<int32_t>(block.index());
    const int32_t row_tiles = tiles_of(rows, Tile::kRows);
    const auto width = static_cast<int32_t>(units);
    dense_product<Tile, Tile::kAtOnce, false>(
        block, memory, index % row_tiles * Tile::kRows, index / row_tiles * Tile::kColumns,
        DenseInput{{x, rows, features}}, {w, features, units},
        [&](int32_t, int32_t column) { return bias == nullptr ? 0.0f : bias[column]; },
        [&](int32_t row, int32_t column, float sum, float added) {
          y[row * width + column] = activated(activation, sum + added);
        });
  }
};

// With g = dy * activation'(y): dw = x' g, db = the sums of g over the rows, and dx (+)= g w'. What
// is null is not computed; db is null if dw is.
template <class Tile>
struct DenseBackward {
  int64_t rows, features, units;
  Activation activation;
  const float* x;
  const float* w;
  const float* y;
  const float* dy;
  float* dw;
  float* db;
  float* dx;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return {int64_t{input_blocks()} + weight_blocks()}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    constexpr int32_t kFloats =
        Tile::kProductFloats > Tile::kWeightFloats ? Tile::kProductFloats : Tile::kWeightFloats;
    float* memory = block.template shared<kFloats>();
    const auto index = static_cast<int32_t>(block.index());
    const DenseSlope g{{dy, rows, units}, {y, rows, units}, activation};
    if (index < input_blocks()) return input_gradient(block, memory, index, g);
    weight_gradient(block, memory, index - input_blocks(), g);
  }

 private:
  // The bias is the weights of one feature more, which is always 1.
  MUSTER_INLINE int64_t weight_rows() const { return features + (db == nullptr ? 0 : 1); }
  MUSTER_INLINE int32_t input_blocks() const {
    return dx == nullptr ? 0 : tiles_of(rows, Tile::kRows) * tiles_of(features, Tile::kColumns);
  }
  MUSTER_INLINE int32_t weight_blocks() const {
    if (dw == nullptr) return 0;
    return tiles_of(weight_rows(), Tile::kWeightRows) * tiles_of(units, Tile::kWeightColumns);
  }

  template <class Block>
  MUSTER_INLINE void input_gradient(Block& block, float* memory, int32_t index,
                                    const DenseSlope& g) const {
    const int32_t row_tiles = tiles_of(rows, Tile::kRows);
    const auto width = static_cast<int32_t>(features);
    dense_product<Tile, 1, true>(
        block, memory, index % row_tiles * Tile::kRows, index / row_tiles * Tile::kColumns, g,
        {w, features, units},
        [&](int32_t row, int32_t column) { return accumulate ? dx[row * width + column] : 0.0f; },
        [&](int32_t row, int32_t column, float sum, float before) {
          dx[row * width + column] = sum + before;
        });
  }

  template <class Block>
  MUSTER_INLINE void weight_gradient(Block& block, float* memory, int32_t index,
                                     const DenseSlope& g) const {
    constexpr int32_t kThreads = kBlockThreads;
    constexpr int32_t kRowFours = Tile::kWeightRows / 4, kColumnFours = Tile::kWeightColumns / 4;
    constexpr int32_t kInputLoads = kMostDenseRows * kRowFours / kThreads;
    constexpr int32_t kSlopeLoads = kMostDenseRows * kColumnFours / kThreads;
    constexpr int32_t kEach = Tile::kWeightRows * kColumnFours / kThreads;  // features of a thread
    const int32_t column_tiles = tiles_of(units, Tile::kWeightColumns);
    const int32_t first_feature = index / column_tiles * Tile::kWeightRows;
    const int32_t first_unit = index % column_tiles * Tile::kWeightColumns;
    const auto count = static_cast<int32_t>(rows);
    const DenseMatrix in(x, rows, features);
    float* inputs = memory;                                       // [rows, kWeightRows]
    float* slopes = memory + kMostDenseRows * Tile::kWeightRows;  // [rows, kWeightColumns]

    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      Four input[kInputLoads];
      DenseSlope::Loaded slope[kSlopeLoads];
      MUSTER_UNROLL
      for (int32_t n = 0; n < kInputLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kRowFours < count)
          input[n] = in.load(item / kRowFours, first_feature + item % kRowFours * 4);
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kSlopeLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kColumnFours < count)
          slope[n] = g.load(item / kColumnFours, first_unit + item % kColumnFours * 4);
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kInputLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kRowFours >= count) break;
        for (int32_t j = 0; j < 4; ++j)
          if (first_feature + item % kRowFours * 4 + j == in.columns) input[n].at[j] = 1.0f;
        store_four(inputs + item * 4, input[n]);
      }
      MUSTER_UNROLL
      for (int32_t n = 0; n < kSlopeLoads; ++n) {
        const int32_t item = thread + n * kThreads;
        if (item / kColumnFours < count) store_four(slopes + item * 4, g.value(slope[n]));
      }
    });
    block.each([&](int64_t one) {
      const auto thread = static_cast<int32_t>(one);
      const int32_t feature = thread / kColumnFours * kEach, unit = thread % kColumnFours * 4;
      float sums[kEach][4] = {};
      for (int32_t row = 0; row < count; ++row) {
        const Four slope = load_four(slopes + row * Tile::kWeightColumns + unit);
        for (int32_t i = 0; i < kEach; ++i)
          for (int32_t j = 0; j < 4; ++j)
            sums[i][j] =
                fma(inputs[row * Tile::kWeightRows + feature + i], slope.at[j], sums[i][j]);
      }
      for (int32_t i = 0; i < kEach; ++i)
        store_weights(first_feature + feature + i, first_unit + unit, sums[i]);
    });
  }

  MUSTER_INLINE void store_weights(int32_t feature, int32_t unit, const float* sums) const {
    if (feature >= weight_rows()) return;
    const auto width = static_cast<int32_t>(units);
    float* to = (feature < features ? dw + static_cast<int64_t>(feature) * width : db) + unit;
    if (unit + 4 <= width && fits_four(to)) {
      store_four(to, {sums[0], sums[1], sums[2], sums[3]});
    } else {
      for (int32_t j = 0; j < 4; ++j)
        if (unit + j < width) to[j] = sums[j];
    }
  }
};

}  // namespace muster::compute::cuda
