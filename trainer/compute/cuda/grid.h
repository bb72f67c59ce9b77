#pragma once

#include <cstdint>

#include "trainer/compute/cuda/kernels/scalar.h"

namespace muster::compute::cuda {

// A kernel is a plain struct: its fields are its arguments, with addresses of memory that the GPU
// can address (its own, or the host's from Gpu::allocate_host), and
//   Shape shape() const;
//   template <class Block> MUSTER_INLINE void operator()(Block& block) const;
// say how many blocks run and what a block does. The body is compiled for the GPU, where each of
// the block's threads calls it, and for the host, where a simulated block is called once and goes
// through its threads in turn. So a body is written in phases, which begin and end for all threads
// together, and has no local state that differs between threads outside a phase:
//   int64_t index() const, count() const: which block it is, of how many;
//   void each(f): calls f(thread) for each thread of the block; all threads have finished before
//     the next phase begins;
//   float sum(f): the sum of f(thread) over the threads, in an order that depends on the number of
//     threads alone; all threads get it;
//   float most(f): the largest f(thread);
//   float* shared<Floats>(): memory of so many floats that the block's threads share. The sizes
//     that a kernel asks for add up to 11 k floats at most. A call ends the use of the memory that
//     earlier calls of the same size have returned;
//   Locals<T> locals<T>(): local state that lasts over phases: locals[thread] is that of a thread,
//     which nobody else uses.
// Also, kBlocksAtOnce may say how many blocks a multiprocessor of a GPU must have room for.
// Threads of different blocks must not write what others read or write.

// Unroll the next loop on a GPU, by n or completely: the loop's loads then overlap, and arrays that
// it goes through can be registers.
#if defined(__CUDA_ARCH__)
#define MUSTER_PRAGMA(text) _Pragma(#text)
#define MUSTER_UNROLL(n) MUSTER_PRAGMA(unroll(n))
#define MUSTER_UNROLL_ALL _Pragma("unroll")
#else
#define MUSTER_UNROLL(n)
#define MUSTER_UNROLL_ALL
#endif

struct Shape {
  int64_t blocks = 1;
};

// Arrays have fewer numbers than this: indices have 32 bits, with which a GPU divides much faster.
constexpr int64_t kMostNumbers = int64_t{1} << 31;

// The number of threads in every block.
constexpr int64_t kBlockThreads = 256;
MUSTER_INLINE int64_t quotient_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
MUSTER_INLINE int32_t tiles_of(int32_t items, int32_t tile) {
  return (items + tile - 1) / tile;
}
// Returns the number of blocks for `items` items, with one item for each thread. There are at most
// `most` blocks; with more items a thread takes several.
MUSTER_INLINE Shape blocks_for(int64_t items, int64_t most = 4096) {
  const int64_t blocks = quotient_up(items, kBlockThreads);
  return {blocks < 1 ? 1 : blocks < most ? blocks : most};
}

// Calls function(item) for each of `items`, fewer than kMostNumbers, over all blocks.
template <class Block, class Function>
MUSTER_INLINE void for_items(Block& block, int64_t items, Function function) {
  block.each([&](int64_t thread) {
    const auto count = static_cast<uint32_t>(items);
    const auto step = static_cast<uint32_t>(block.count() * kBlockThreads);
    for (auto i = static_cast<uint32_t>(block.index() * kBlockThreads + thread); i < count;
         i += step)
      function(i);
  });
}

// Calls function(i, column) for each group of N neighbouring numbers in a matrix without gaps: `i`
// is the index of the first number, and `column` its column; N divides `columns`.
template <int N, class Block, class Function>
MUSTER_INLINE void for_packs(Block& block, int64_t rows, int64_t columns, Function function) {
  const auto packs = static_cast<uint32_t>(columns / N);
  for_items(block, rows * columns / N, [&](uint32_t i) {
    function(static_cast<int>(i * N), static_cast<int>(i % packs * N));
  });
}

// Calls function(item) for each of `items` within a block.
template <class Block, class Function>
MUSTER_INLINE void for_block_items(Block& block, int64_t items, Function function) {
  block.each([&](int64_t thread) {
    for (int64_t i = thread; i < items; i += kBlockThreads) function(i);
  });
}

// Returns the sum of function(item) over `items` within a block, in an order that depends on the
// number of items alone.
template <class Block, class Function>
MUSTER_INLINE float sum_block_items(Block& block, int64_t items, Function function) {
  return block.sum([&](int64_t thread) {
    float sum = 0;
    for (int64_t i = thread; i < items; i += kBlockThreads) sum += function(i);
    return sum;
  });
}

}  // namespace muster::compute::cuda
