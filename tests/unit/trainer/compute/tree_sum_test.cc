#include "trainer/compute/tree_sum.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "trainer/compute/parameter_layout.h"

namespace muster::compute {
namespace {

using testing::ElementsAre;

constexpr int kMostLeaves = 17;

using Buffers = std::vector<std::vector<float>>;

// The magnitudes are so far apart that every other order of the additions has other bits.
Buffers random_buffers(int count, size_t floats) {
  std::mt19937 engine(static_cast<unsigned>(count));
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-12, 12);
  Buffers buffers(static_cast<size_t>(count), std::vector<float>(floats));
  for (auto& buffer : buffers)
    for (float& value : buffer) value = std::ldexp(mantissa(engine), exponent(engine));
  return buffers;
}

// Rounds to the nearest number with eight binary digits, and to the even one if two are equally
// near. std::nearbyint does so by default.
float bfloat16(float value) {
  int exponent = 0;
  const float mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(mantissa, 8)), exponent - 8);
}

// Computes the sum as the header describes it, as plainly as possible.
float plain_sum(const Buffers& leaves, size_t at, int begin, int end, bool rounded) {
  const auto kept = [rounded](float value) { return rounded ? bfloat16(value) : value; };
  if (end - begin == 1) return kept(leaves[static_cast<size_t>(begin)][at]);
  int half = 1;
  while (2 * half < end - begin) half *= 2;
  return kept(plain_sum(leaves, at, begin, begin + half, rounded) +
              plain_sum(leaves, at, begin + half, end, rounded));
}

std::vector<float> plain_sum(const Buffers& leaves, int begin, int end, bool rounded = false) {
  std::vector<float> sum(leaves[0].size());
  for (size_t at = 0; at < sum.size(); ++at) sum[at] = plain_sum(leaves, at, begin, end, rounded);
  return sum;
}

std::vector<uint32_t> bits(std::span<const float> values) {
  std::vector<uint32_t> bits;
  for (const float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

void list_nodes(Subtree node, std::vector<Subtree>& nodes) {
  nodes.push_back(node);
  if (node.size() == 1) return;
  list_nodes(node.first(), nodes);
  list_nodes(node.second(), nodes);
}

TEST(TreeSumTest, ANodesFirstSideIsAsManyAsTheLargestPowerOfTwoBelow) {
  const auto sides = [](int leaves) {
    const Subtree top{3, 3 + leaves};
    EXPECT_EQ(top.first().begin, top.begin);
    EXPECT_EQ(top.first().end, top.second().begin);
    EXPECT_EQ(top.second().end, top.end);
    return std::pair(top.first().size(), top.second().size());
  };
  EXPECT_EQ(sides(2), std::pair(1, 1));
  EXPECT_EQ(sides(3), std::pair(2, 1));
  EXPECT_EQ(sides(4), std::pair(2, 2));
  EXPECT_EQ(sides(5), std::pair(4, 1));
  EXPECT_EQ(sides(8), std::pair(4, 4));
  EXPECT_EQ(sides(17), std::pair(16, 1));
}

TEST(TreeSumTest, ACoverIsTheFewestNodesThatAreTheRangeTogether) {
  for (int leaves = 1; leaves <= kMostLeaves; ++leaves) {
    std::vector<Subtree> nodes;
    list_nodes({0, leaves}, nodes);
    for (int begin = 0; begin < leaves; ++begin)
      for (int end = begin + 1; end <= leaves; ++end) {
        const std::vector<Subtree> found = cover(leaves, begin, end);
        ASSERT_EQ(found.front().begin, begin);
        ASSERT_EQ(found.back().end, end);
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_NE(std::ranges::find(nodes, found[i]), nodes.end()) << "no node of the tree";
          if (i == 0) continue;
          ASSERT_EQ(found[i].begin, found[i - 1].end);
        }
        // They are the fewest if none of them lies under another node that is wholly in the range.
        for (const Subtree& node : nodes) {
          if (node.begin < begin || end < node.end) continue;
          ASSERT_EQ(std::ranges::count_if(found,
                                          [&](const Subtree& one) {
                                            return one != node && node.begin <= one.begin &&
                                                   one.end <= node.end;
                                          }),
                    0);
        }
      }
  }
}

TEST(TreeSumTest, NothingIsCoveredByNoNodes) {
  EXPECT_TRUE(cover(5, 2, 2).empty());
  EXPECT_THAT(cover(5, 0, 5), ElementsAre(Subtree{0, 5}));
}

// Adds up in blocks, with a tail, from pieces whose leaves were added up beforehand.
std::vector<float> sum_of_pieces(const std::vector<Subtree>& pieces, const Buffers& leaves,
                                 size_t block, bool rounded = false) {
  Buffers sums;
  std::vector<const float*> buffers;
  for (const Subtree& piece : pieces)
    sums.push_back(plain_sum(leaves, piece.begin, piece.end, rounded));
  for (const auto& sum : sums) buffers.push_back(sum.data());
  TreeSum tree(pieces, block, rounded);
  EXPECT_EQ(tree.block(), block);
  const size_t floats = leaves[0].size();
  std::vector<float> result(floats);
  for (size_t at = 0; at < floats; at += block) {
    const size_t size = std::min(block, floats - at);
    const float* const sum = tree.sum(buffers, at, size);
    std::copy(sum, sum + size, result.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return result;
}

class EitherTreeSumTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Sums, EitherTreeSumTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Rounded" : "AsTheyAre");
});

TEST_P(EitherTreeSumTest, TheSumHasTheSameBitsWhoeverHoldsWhichLeaves) {
  constexpr size_t kFloats = 75;
  for (int replicas = 1; replicas <= kMostLeaves; ++replicas) {
    const Buffers leaves = random_buffers(replicas, kFloats);
    const auto expected = bits(plain_sum(leaves, 0, replicas, GetParam()));
    for (int members = 1; members <= replicas + 2; ++members) {
      std::vector<Subtree> pieces;
      for (int member = 0; member < members; ++member)
        for (const Subtree& node :
             cover(replicas, replicas * member / members, replicas * (member + 1) / members))
          pieces.push_back(node);
      for (const size_t block : {size_t{1}, size_t{32}, size_t{37}, kFloats, 2 * kFloats})
        ASSERT_EQ(bits(sum_of_pieces(pieces, leaves, block, GetParam())), expected)
            << replicas << " replicas, " << members << " members, blocks of " << block;
    }
  }
}

TEST_P(EitherTreeSumTest, AnyCutWillDo) {
  constexpr int kLeaves = 13;
  const Buffers leaves = random_buffers(kLeaves, 40);
  const auto expected = bits(plain_sum(leaves, 0, kLeaves, GetParam()));
  for (unsigned cuts = 0; cuts < 1u << (kLeaves - 1); cuts += 3) {
    std::vector<Subtree> pieces;
    for (int begin = 0, end = 1; end <= kLeaves; ++end) {
      if (end < kLeaves && (cuts >> (end - 1) & 1) == 0) continue;
      for (const Subtree& node : cover(kLeaves, begin, end)) pieces.push_back(node);
      begin = end;
    }
    ASSERT_EQ(bits(sum_of_pieces(pieces, leaves, 16, GetParam())), expected) << cuts;
  }
}

// Pieces that have not been rounded yet give the same sum.
TEST(TreeSumTest, WhatIsRoundedIsSoByWhoeverReadsIt) {
  const Buffers leaves = random_buffers(5, 3000);
  const auto expected = plain_sum(leaves, 0, 5, true);
  EXPECT_NE(bits(expected), bits(plain_sum(leaves, 0, 5)));
  for (const uint32_t word : bits(expected)) ASSERT_EQ(word & 0xffffu, 0u);
  std::vector<const float*> buffers;
  for (const auto& leaf : leaves) buffers.push_back(leaf.data());
  TreeSum tree({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}, 3000, true);
  EXPECT_EQ(bits({tree.sum(buffers, 0, 3000), 3000}), bits(expected));
  TreeSum one({{0, 1}}, 3000, true);
  EXPECT_EQ(bits({one.sum(std::span(buffers).first(1), 0, 3000), 3000}),
            bits(plain_sum(leaves, 0, 1, true)));
}

// Adds by ranges, and in place.
TEST(TreeArithmeticTest, IsTheSameForEachFloatWhateverIsAddedUpAtOnce) {
  constexpr size_t kFloats = 5000;
  for (const bool rounded : {false, true}) {
    const Buffers leaves = random_buffers(3, kFloats);
    const TreeArithmetic arithmetic(rounded);
    std::vector<float> left = leaves[0];
    std::vector<float> sum = leaves[2];
    arithmetic.add(left.data(), leaves[1].data(), left);
    for (const Range range : {Range{0, 1}, Range{1, 4001}, Range{4001, kFloats}}) {
      const std::span<float> some = std::span(sum).subspan(range.begin, range.size());
      arithmetic.add(left.data() + range.begin, some.data(), some);
      arithmetic.read(some.data(), some);
    }
    EXPECT_EQ(bits(sum), bits(plain_sum(leaves, 0, 3, rounded)));
    std::vector<float> copy(kFloats);
    arithmetic.read(leaves[0].data(), copy);
    EXPECT_EQ(bits(copy), bits(plain_sum(leaves, 0, 1, rounded)));
  }
}

// This shows that the tests above could fail.
TEST(TreeSumTest, AnotherOrderHasOtherBits) {
  const Buffers leaves = random_buffers(kMostLeaves, 40);
  std::vector<float> sum(40);
  for (const auto& leaf : leaves)
    std::transform(sum.begin(), sum.end(), leaf.begin(), sum.begin(), std::plus<>());
  EXPECT_NE(bits(sum), bits(plain_sum(leaves, 0, kMostLeaves)));
}

TEST(TreeSumTest, OneBufferIsReadWhereItLies) {
  const std::vector<float> buffer = {1, 2, 3};
  const std::vector<const float*> buffers = {buffer.data()};
  TreeSum tree({{0, 4}}, 2);
  EXPECT_EQ(tree.sum(buffers, 1, 2), buffer.data() + 1);
}

}  // namespace
}  // namespace muster::compute
