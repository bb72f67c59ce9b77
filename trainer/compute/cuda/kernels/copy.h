#pragma once

#include "trainer/compute/cuda/grid.h"

namespace muster::compute::cuda {

// out[r, c] = in[starts[r] + c] * scale + offset; without `starts` the rows are contiguous.
struct Convert {
  int64_t rows, columns;
  const uint64_t* starts;
  float scale, offset;
  float* out;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block, class Element>
  MUSTER_INLINE void run(Block& block, const Element* in) const {
    for_items(block, rows * columns, [&](uint32_t i) {
      const auto width = static_cast<uint32_t>(columns);
      const Element* from = starts == nullptr ? in + i : in + starts[i / width] + i % width;
      out[i] = fma(static_cast<float>(*from), scale, offset);
    });
  }
};
struct ConvertBytes : Convert {
  const uint8_t* in;
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    run(block, in);
  }
};
struct ConvertFloats : Convert {
  const float* in;
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    run(block, in);
  }
};

// Copies from the host's memory, which the GPU can read, to the GPU's memory. A copy by cudaMemcpy
// would take longer to begin. The sizes are multiples of 4 bytes.
struct Fetch {
  struct Piece {
    const void* from;
    void* to;
    size_t bytes;
    MUSTER_INLINE uint32_t words() const { return static_cast<uint32_t>(bytes / sizeof(uint32_t)); }
  };
  Piece first, second;

  MUSTER_INLINE Shape shape() const { return blocks_for(first.words() + second.words()); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, first.words() + second.words(), [&](uint32_t i) {
      const Piece& piece = i < first.words() ? first : second;
      const uint32_t word = i < first.words() ? i : i - first.words();
      static_cast<uint32_t*>(piece.to)[word] = static_cast<const uint32_t*>(piece.from)[word];
    });
  }
};

// out[r, c] (+)= in[r, c].
struct Copy {
  int64_t rows, columns;
  const float* in;
  int64_t ldi;
  float* out;
  int64_t ldo;
  bool accumulate;

  MUSTER_INLINE Shape shape() const { return blocks_for(rows * columns); }
  template <class Block>
  MUSTER_INLINE void operator()(Block& block) const {
    for_items(block, rows * columns, [&](uint32_t i) {
      const uint32_t row = i / static_cast<uint32_t>(columns);
      const uint32_t column = i % static_cast<uint32_t>(columns);
      float& to = out[row * ldo + column];
      const float from = in[row * ldi + column];
      to = accumulate ? from + to : from;
    });
  }
};

}  // namespace muster::compute::cuda
