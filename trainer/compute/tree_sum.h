#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "trainer/compute/aligned.h"

namespace muster::host {
struct Arithmetic;
}

namespace muster::compute {

// The sum of floats depends on the order of the additions. Here a binary tree gives the order, and
// the tree follows from the number of leaves alone: a node of n > 1 leaves is the sum of its first
// part (the largest power of two below n leaves) and of the rest. So any process may first add up
// the leaves under one node: the total has the same bits.
//
// If sums are `rounded`, every leaf and the sum at every node, the last one included, is rounded to
// bfloat16 (to the nearest, ties to even) by its reader. A sum may also be rounded earlier, so that
// it can be sent in two bytes; this does not change the bits of the total.

// A node, given by the leaves under it.
struct Subtree {
  int begin = 0;
  int end = 0;
  int size() const { return end - begin; }
  Subtree first() const;  // precondition of first() and rest(): size() > 1
  Subtree second() const;
  bool operator==(const Subtree&) const = default;
};

// Returns the smallest set of nodes of the tree over `leaves` that covers [begin, end), in order.
std::vector<Subtree> cover(int leaves, int begin, int end);

// The arithmetic of one node, on any range of the buffers.
class TreeArithmetic {
 public:
  explicit TreeArithmetic(bool rounded);

  bool rounded() const { return rounded_; }
  // Copies to.size() floats of the sum to `to`, rounded if sums are rounded. `sum` may be `to`.
  void read(const float* sum, std::span<float> to) const;
  // to = left + right; both are rounded first if sums are rounded. `left` or `right` may be `to`.
  void add(const float* left, const float* right, std::span<float> to) const;

 private:
  const host::Arithmetic& arithmetic_;
  const bool rounded_;
};

// Adds up blocks of buffers. Each buffer is the sum under one node, already rounded or not.
class TreeSum {
 public:
  // `pieces` are in order, and together they are all leaves (as cover() returns them). `block` is
  // the largest number of floats for one call of sum().
  TreeSum(std::vector<Subtree> pieces, size_t block, bool rounded = false);

  size_t block() const { return block_; }
  // Returns the sum of floats [at, at + size) of each piece's buffer: a pointer into the only
  // buffer, or into this object's memory, valid until the next call. The sum is rounded if sums are
  // rounded.
  const float* sum(std::span<const float* const> buffers, size_t at, size_t size);

 private:
  // to = left + right; each is the index of a buffer, or (from pieces.size() on) of a block of this
  // object.
  struct Addition {
    size_t left, right, to;
  };
  size_t plan(Subtree node, const std::vector<Subtree>& pieces, size_t level);

  const TreeArithmetic arithmetic_;
  const size_t block_;
  std::vector<Addition> additions_;
  std::vector<Floats> sums_;
  Floats result_;                 // the rounded sum
  std::vector<const float*> at_;  // by index, as in Addition
};

}  // namespace muster::compute
