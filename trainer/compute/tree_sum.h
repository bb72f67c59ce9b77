#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::host {
struct Arithmetic;
}

namespace muster::compute {

// Addition of floats depends on its order. Here it is that of one binary tree, fixed by the number
// of its leaves alone: a node of n > 1 leaves is the sum of its first half, as many as the largest
// power of two below n, and of the rest. Whoever holds some of the leaves may add up what lies
// under one node beforehand: the sum of all has the same bits.
//
// Where sums are `rounded`, every leaf and the sum at every node, the last one included, is rounded
// to bfloat16 (to the nearest, ties to even) by whoever reads it. So it may have been rounded
// already, to be sent in two bytes, and where it was makes no difference to the bits either.

// A node, by the leaves under it.
struct Subtree {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
  Subtree first() const;  // precondition of both: size() > 1
  Subtree second() const;
  bool operator==(const Subtree&) const = default;
};

// The fewest nodes of the tree over `leaves` that are together [begin, end), in order.
std::vector<Subtree> cover(int leaves, int begin, int end);

// What is done at each node, to any range of the buffers.
class TreeArithmetic {
 public:
  explicit TreeArithmetic(bool rounded);

  bool rounded() const { return rounded_; }
  // A sum as it is read: as long as `to`, which may be the same.
  void read(const float* sum, std::span<float> to) const;
  // to = left + right, both as they are read; likewise.
  void add(const float* left, const float* right, std::span<float> to) const;

 private:
  const host::Arithmetic& arithmetic_;
  const bool rounded_;
};

// Adds up blocks of buffers that are each the sum under one node, rounded yet or not.
class TreeSum {
 public:
  // `pieces`: in order, all leaves together (as cover() gives them); `block`: most floats at once.
  TreeSum(std::vector<Subtree> pieces, size_t block, bool rounded = false);

  size_t block() const { return block_; }
  // The sum of floats [at, at + size) of each piece's buffer: a pointer into the only buffer, or to
  // memory of our own, valid until the next call. Where sums are rounded it is.
  const float* sum(std::span<const float* const> buffers, size_t at, size_t size);

 private:
  // to = left + right; the index of a buffer, or (from pieces.size() on) of a block of our own.
  struct Addition {
    size_t left, right, to;
  };
  size_t plan(Subtree node, const std::vector<Subtree>& pieces, size_t level);

  const TreeArithmetic arithmetic_;
  const size_t block_;
  std::vector<Addition> additions_;
  std::vector<Floats> sums_;
  Floats result_;                 // where it is rounded
  std::vector<const float*> at_;  // of each index
};

}  // namespace muster::compute
