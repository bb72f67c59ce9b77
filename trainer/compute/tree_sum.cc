#include "trainer/compute/tree_sum.h"

#include <algorithm>
#include <bit>

#include "trainer/host/arithmetic.h"

namespace muster::compute {

Subtree Subtree::first() const {
  return {begin, begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(size() - 1)))};
}

Subtree Subtree::second() const {
  return {first().end, end};
}

namespace {

// In floats; a block stays in the first-level cache while it is rounded.
constexpr size_t kBlock = 1024;

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

TreeArithmetic::TreeArithmetic(bool rounded) : arithmetic_(host::arithmetic()), rounded_(rounded) {}

void TreeArithmetic::read(const float* sum, std::span<float> to) const {
  if (rounded_)
    arithmetic_.round_to_bfloat16(static_cast<int64_t>(to.size()), sum, to.data());
  else if (sum != to.data())
    std::copy_n(sum, to.size(), to.data());
}

void TreeArithmetic::add(const float* left, const float* right, std::span<float> to) const {
  if (!rounded_) return arithmetic_.add(static_cast<int64_t>(to.size()), left, right, to.data());
  alignas(64) float sides[2][kBlock];
  for (size_t at = 0; at < to.size(); at += kBlock) {
    const size_t size = std::min(kBlock, to.size() - at);
    read(left + at, {sides[0], size});
    read(right + at, {sides[1], size});
    arithmetic_.add(static_cast<int64_t>(size), sides[0], sides[1], to.data() + at);
  }
}

TreeSum::TreeSum(std::vector<Subtree> pieces, size_t block, bool rounded)
    : arithmetic_(rounded), block_(block), result_(rounded ? block : 0), at_(pieces.size()) {
  if (!pieces.empty()) plan({0, pieces.back().end}, pieces, 0);
  for (const Floats& sum : sums_) at_.push_back(sum.data());
}

// Returns the index of the node's sum. There is one block for each level: the right side's sum is
// written after the left side's sum and must not overwrite it.
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
  for (const Addition& addition : additions_)
    arithmetic_.add(at_[addition.left], at_[addition.right],
                    {const_cast<float*>(at_[addition.to]), size});
  const float* const sum = at_[additions_.empty() ? 0 : additions_.back().to];
  if (!arithmetic_.rounded()) return sum;
  arithmetic_.read(sum, {result_.data(), size});
  return result_.data();
}

}  // namespace muster::compute
