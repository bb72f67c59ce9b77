#pragma once

#include "trainer/compute/cuda/grid.h"
#include "trainer/compute/cuda/numbers.h"

namespace muster::compute::cuda {

// Some rows of a matrix of floats without gaps, and the place of their bfloat16 copy, with `stride`
// numbers from a row to the next row.
struct RoundedRows {
  int64_t from, to;  // offsets in the arrays, in numbers
  int rows, columns, stride;
};

// Rounds matrices to bfloat16, and pads their rows with zeros. Each block handles one of the
// pieces.
struct RoundMatrices {
  int64_t pieces;
  const RoundedRows* piece;
  const float* from;
  uint16_t* to;

  MUSTER_INLINE Shape shape() const { return {pieces}; }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    const RoundedRows one = piece[block.index()];
    const Array<false> in(const_cast<float*>(from + one.from));
    const Array<true> out(to + one.to);
    pack_of(one.columns) == 1 ? round<1>(block, one, in, out) : round<4>(block, one, in, out);
  }

 private:
  template <int N, class Block>
  MUSTER_INLINE static void round(Block& block, const RoundedRows& one, const Array<false>& in,
                                  const Array<true>& out) {
    const auto packs = static_cast<uint32_t>(one.stride / N);
    for_block_items(block, one.rows * int64_t{packs}, [&](int64_t i) {
      const auto row = static_cast<uint32_t>(i) / packs;
      const int column = static_cast<int>(static_cast<uint32_t>(i) % packs) * N;
      Pack<N> values{};
      if (column < one.columns) values = in.load_pack<N>(row * one.columns + column);
      out.store_pack<N>(i * N, values);
    });
  }
};

}  // namespace muster::compute::cuda
