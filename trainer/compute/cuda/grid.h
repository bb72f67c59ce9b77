#pragma once

#include <cstdint>

#include "trainer/compute/cuda/kernels/scalar.h"

namespace muster::compute::cuda {

// A kernel is a plain struct: its fields are its arguments, with addresses of the GPU's memory, and
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
//   float* shared<Floats>(): memory of so many floats that the block's threads share, at most 11 k.
//     Its contents are undefined at each call;
//   Locals<T> locals<T>(): local state that lasts over phases: locals[thread] is that of a thread,
//     which nobody else uses.
// Threads of different blocks must not write what others read or write.

struct Shape {
  int64_t blocks = 1;
};

// The threads of every block.
constexpr int64_t kBlockThreads = 256;
// Returns the number of blocks for `items`, one for each thread, where a thread takes several once
// there are `most` blocks.
MUSTER_INLINE Shape blocks_for(int64_t items, int64_t most = 4096) {
  const int64_t blocks = (items + kBlockThreads - 1) / kBlockThreads;
  return {blocks < 1 ? 1 : blocks < most ? blocks : most};
}

// Calls function(item) for each of `items`, over all blocks.
template <class Block, class Function>
MUSTER_INLINE void for_items(Block& block, int64_t items, Function function) {
  block.each([&](int64_t thread) {
    const int64_t step = block.count() * kBlockThreads;
    for (int64_t i = block.index() * kBlockThreads + thread; i < items; i += step) function(i);
  });
}

// Calls function(item) for each of `items` within a block.
template <class Block, class Function>
MUSTER_INLINE void for_block_items(Block& block, int64_t items, Function function) {
  block.each([&](int64_t thread) {
    for (int64_t i = thread; i < items; i += kBlockThreads) function(i);
  });
}

// Returns the sum of function(item) for each of `items` within a block, in an order that depends on
// their number alone.
template <class Block, class Function>
MUSTER_INLINE float sum_block_items(Block& block, int64_t items, Function function) {
  return block.sum([&](int64_t thread) {
    float sum = 0;
    for (int64_t i = thread; i < items; i += kBlockThreads) sum += function(i);
    return sum;
  });
}

}  // namespace muster::compute::cuda
