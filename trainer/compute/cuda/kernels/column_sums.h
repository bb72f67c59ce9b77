#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/cuda/numbers.h"

namespace muster::compute::cuda {

// Sums over the rows of a matrix, for each column, by two kernels, so that the order of the
// additions depends on the shape alone: the first writes sums of parts of the rows, the second adds
// up the parts.

// How finely a matrix is cut: the minimum of rows for each thread, and the approximate number of
// blocks. A large GPU runs this number of blocks at once, so that all blocks end together.
struct Grain {
  int rows = 8, blocks = 512;
};

// How the first kernel cuts up a matrix. A block takes a part of the rows and some columns; its
// threads stand in `strips` lines of `lanes`, each with `pack` columns and every strips-th row.
struct Cut {
  int rows, columns;
  int lanes, strips;
  int tiles;      // blocks side by side
  int part_rows;  // rows of a part; the last part may have fewer
  int parts;

  Grain grain;

  MUSTER_INLINE Cut(int64_t all_rows, int64_t all_columns, int pack, Grain grain = {})
      : rows(static_cast<int>(all_rows)), columns(static_cast<int>(all_columns)), grain(grain) {
    const int packs = columns / pack;
    lanes = 1;
    while (lanes < packs && lanes < 32) lanes *= 2;
    strips = static_cast<int>(kBlockThreads) / lanes;
    tiles = tiles_of(packs, lanes);
    const int each = tiles_of(tiles_of(rows * tiles, grain.blocks), strips);
    part_rows = (each < grain.rows ? grain.rows : each) * strips;
    parts = tiles_of(rows, part_rows);
  }

  MUSTER_INLINE int rows_of(int part) const {
    return part + 1 < parts ? part_rows : rows - part * part_rows;
  }
  MUSTER_INLINE Shape shape() const { return {int64_t{parts} * tiles}; }
  MUSTER_INLINE int first_row(int block) const { return block / tiles * part_rows; }
  // Returns an upper bound for the number of parts, which also holds for fewer rows.
  int most_parts() const {
    const int by_blocks = tiles_of(grain.blocks, tiles);
    const int by_rows = tiles_of(rows, grain.rows * strips);
    return by_blocks < by_rows ? by_blocks : by_rows;
  }
};

// Runs block `index` of a cut's parts * tiles blocks. make(column) returns a function add(row,
// sums), which adds the row's values in columns [column, column + N) to the K packs `sums`. Then
// finish(part, column, total) is called for each column of the block's part, and total(k) returns a
// sum.
template <int N, int K, class Block, class Make, class Finish>
MUSTER_INLINE void sum_part(Block& block, int index, const Cut& cut, Make make, Finish finish) {
  constexpr int kThreads = static_cast<int>(kBlockThreads);
  float* shared = block.template shared<int64_t{K} * N * kBlockThreads>();
  const int part = index / cut.tiles;
  const int first = index % cut.tiles * cut.lanes;
  const int begin = part * cut.part_rows;
  const int end = begin + cut.rows_of(part);
  block.each([&](int64_t thread) {
    const int lane = static_cast<int>(thread) % cut.lanes;
    const int strip = static_cast<int>(thread) / cut.lanes;
    const int column = (first + lane) * N;
    Pack<N> sums[K] = {};
    if (column < cut.columns) {
      const auto add = make(column);
      MUSTER_UNROLL(K > 2 ? 1 : N == 8 ? 2 : 4)
      for (int row = begin + strip; row < end; row += cut.strips) add(row, sums);
    }
    MUSTER_UNROLL_ALL
    for (int k = 0; k < K; ++k) MUSTER_UNROLL_ALL
    for (int n = 0; n < N; ++n) shared[(k * N + n) * kThreads + thread] = sums[k].at[n];
  });
  block.each([&](int64_t thread) {
    for (int i = static_cast<int>(thread); i < K * N * cut.lanes; i += kThreads) {
      float* column = shared + i / cut.lanes * kThreads + i % cut.lanes;
      float sum = 0;
      for (int strip = 0; strip < cut.strips; ++strip) sum += column[strip * cut.lanes];
      *column = sum;
    }
  });
  block.each([&](int64_t thread) {
    const int lane = static_cast<int>(thread) % cut.lanes, n = static_cast<int>(thread) / cut.lanes;
    const int column = (first + lane) * N + n;
    if (n >= N || column >= cut.columns) return;
    finish(part, column, [&](int k) { return shared[(k * N + n) * kThreads + lane]; });
  });
}

// For the second kernel: blocks take kJoined columns each.
constexpr int kJoined = 4;
MUSTER_INLINE Shape blocks_for_columns(int64_t columns) {
  return {quotient_up(columns, kJoined)};
}

// add(sums, part, column) adds a part's values to K sums; then finish(column, total) is called for
// each column of this block, and total(k) returns a sum over the parts.
template <int K, class Block, class Add, class Finish>
MUSTER_INLINE void join_parts(Block& block, int parts, int columns, Add add, Finish finish) {
  constexpr int kThreads = static_cast<int>(kBlockThreads), kStrips = kThreads / kJoined;
  constexpr int kAtOnce = 8;
  float* shared = block.template shared<K * kBlockThreads>();
  const int first = static_cast<int>(block.index()) * kJoined;
  block.each([&](int64_t thread) {
    const int column = first + static_cast<int>(thread) % kJoined;
    float sums[K] = {};
    if (column < columns) {
      for (int part = static_cast<int>(thread) / kJoined; part < parts; part += kAtOnce * kStrips) {
        MUSTER_UNROLL_ALL
        for (int i = 0; i < kAtOnce; ++i)
          if (part + i * kStrips < parts) add(sums, part + i * kStrips, column);
      }
    }
    for (int k = 0; k < K; ++k) shared[k * kThreads + thread] = sums[k];
  });
  block.each([&](int64_t thread) {
    const int column = first + static_cast<int>(thread);
    if (thread >= kJoined || column >= columns) return;
    finish(column, [&](int k) {
      float sum = 0;
      for (int strip = 0; strip < kStrips; ++strip)
        sum += shared[k * kThreads + strip * kJoined + thread];
      return sum;
    });
  });
}

// Sums of x: [parts, columns].
struct ColumnSums {
  int64_t rows, columns;
  const float* x;
  float* parts;

  MUSTER_INLINE Cut cut() const { return {rows, columns, pack_of(columns)}; }
  MUSTER_INLINE Shape shape() const { return cut().shape(); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const auto run = [&]<int N>(Fixed<N>) {
      sum_part<N, 1>(
          block, static_cast<int>(block.index()), cut(),
          [&](int column) {
            return [=, this](int row, Pack<N>* sums) {
              const Pack<N> values = load_floats<N>(x + row * columns + column);
              for (int i = 0; i < N; ++i) sums->at[i] += values.at[i];
            };
          },
          [&](int part, int column, auto total) { parts[part * columns + column] = total(0); });
    };
    pack_of(columns) == 1 ? run(Fixed<1>{}) : run(Fixed<4>{});
  }
};

// out[c] = the sum of in[part, c] over the parts.
struct SumParts {
  int64_t parts, columns;
  const float* in;
  float* out;

  MUSTER_INLINE Shape shape() const { return blocks_for_columns(columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    join_parts<1>(
        block, static_cast<int>(parts), static_cast<int>(columns),
        [&](float* sums, int part, int column) { *sums += in[part * columns + column]; },
        [&](int column, auto total) { out[column] = total(0); });
  }
};

}  // namespace muster::compute::cuda
