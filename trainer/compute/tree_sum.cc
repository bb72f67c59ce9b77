#include "trainer/compute/tree_sum.h"

#include <algorithm>
#include <bit>

#include "trainer/compute/cpu/kernels.h"

namespace muster::compute {

Subtree Subtree::first() const {
  return {begin, begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(size() - 1)))};
}

Subtree Subtree::second() const {
  return {first().end, end};
}

namespace {

void add_nodes(Subtree node, int begin, int end, std::vector<Subtree>& nodes) {
  if (node.end <= begin || end <= node.begin) return;
  if (begin <= node.begin && node.end <= end) return nodes.push_back(node);
  add_nodes(node.first(), begin, end, nodes);
  add_nodes(node.second(), begin, end, nodes);
}

}  // namespace

std::vector<Subtree> cover(int leaves, int begin, int end) {
  std::vector<Subtree> nodes;
  if (begin < end) add_nodes({0, leaves}, begin, end, nodes);
  return nodes;
}

TreeSum::TreeSum(std::vector<Subtree> pieces, size_t block)
    : kernels_(cpu::select_kernels()), block_(block), at_(pieces.size()) {
  if (!pieces.empty()) plan({0, pieces.back().end}, pieces, 0);
  for (const Floats& sum : sums_) at_.push_back(sum.data());
}

// Where the node's sum will be. Blocks are by level: a right side's is written after its left
// side's was, and must leave that.
size_t TreeSum::plan(Subtree node, const std::vector<Subtree>& pieces, size_t level) {
  const auto found = std::find(pieces.begin(), pieces.end(), node);
  if (found != pieces.end()) return static_cast<size_t>(found - pieces.begin());
  if (sums_.size() <= level) sums_.emplace_back(block_);
  const size_t left = plan(node.first(), pieces, level);
  const size_t right = plan(node.second(), pieces, level + 1);
  additions_.push_back({left, right, pieces.size() + level});
  return additions_.back().to;
}

const float* TreeSum::sum(std::span<const float* const> buffers, size_t at, size_t size) {
  std::transform(buffers.begin(), buffers.end(), at_.begin(),
                 [at](const float* buffer) { return buffer + at; });
  if (additions_.empty()) return at_[0];
  for (const Addition& addition : additions_)
    kernels_.add(static_cast<int64_t>(size), at_[addition.left], at_[addition.right],
                 const_cast<float*>(at_[addition.to]));
  return at_[additions_.back().to];
}

}  // namespace muster::compute
