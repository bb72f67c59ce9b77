#include "trainer/detection/hard_example_miner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/support.h"
#include "tests/unit/trainer/detection/support.h"
#include "trainer/detection/argmax_matcher.h"

namespace muster::detection::testing {
namespace {

// Boxes that do not overlap.
std::vector<float> apart(size_t count) {
  std::vector<float> boxes;
  for (size_t i = 0; i < count; ++i) {
    const auto at = static_cast<float>(i);
    boxes.insert(boxes.end(), {at, at, at + 1, at + 1});
  }
  return boxes;
}

TEST(HardExampleMiner, KeepsMatchedAnchorsAndTheHardestOfTheOthers) {
  constexpr int32_t kNo = kUnmatched, kIg = kIgnored;
  struct Case {
    const char* what;
    MiningSettings settings;
    std::vector<float> losses;
    std::vector<int32_t> matches;
    std::vector<int32_t> expected;
  };
  const std::vector<Case> cases = {
      {"one negative for each positive",
       {3000, 0.99f, 1, 0},
       {9, 8, 7, 6, 5, 4},
       {0, kNo, 1, kNo, kNo, kNo},
       {0, 1, 2, 3}},
      {"three for each",
       {3000, 0.99f, 3, 0},
       {1, 8, 7, 6, 5, 4},
       {2, kNo, kNo, kNo, kNo, kNo},
       {1, 2, 3, 0}},
      {"half of one: rounded down", {3000, 0.99f, 0.5f, 0}, {9, 8, 7}, {0, kNo, kNo}, {0}},
      {"nothing is matched", {3000, 0.99f, 3, 0}, {9, 8}, {kNo, kNo}, {}},
      {"but some are allowed", {3000, 0.99f, 3, 2}, {9, 8, 7}, {kNo, kNo, kNo}, {0, 1}},
      {"any number", {3000, 0.99f, 0, 0}, {1, 2, 3}, {kNo, kNo, kNo}, {2, 1, 0}},
      {"at most so many examples", {2, 0.99f, 3, 0}, {1, 2, 3}, {0, kNo, kNo}, {}},
      {"ignored anchors stay until there are too many negatives",
       {3000, 0.99f, 1, 0},
       {9, 8, 7, 6, 5},
       {kIg, 0, kNo, kNo, kIg},
       {0, 1, 2}},
      {"equal losses: the lower index",
       {3000, 0.99f, 1, 0},
       {5, 5, 5, 5},
       {kNo, kNo, 3, kNo},
       {0, 2}},
      {"a loss that is NaN is left out",
       {3000, 0.99f, 3, 0},
       {kNan, 5, kNan, 4},
       {0, 0, kNo, kNo},
       {1, 3}},
      {"no anchors", {}, {}, {}, {}},
  };
  for (const Case& one : cases) {
    HardExampleMiner miner(one.settings, one.losses.size());
    const auto selected = miner.select(apart(one.losses.size()), one.losses, one.matches);
    EXPECT_EQ(std::vector<int32_t>(selected.begin(), selected.end()), one.expected) << one.what;
  }
}

TEST(HardExampleMiner, TakesOneOfBoxesThatAreNearlyTheSame) {
  std::vector<float> boxes = apart(4);
  put_box(boxes, 2, {0, 0.001f, 1, 1.001f});  // as the first
  put_box(boxes, 3, {0, 0.1f, 1, 1.1f});
  HardExampleMiner miner({}, 4);
  const std::vector<float> losses = {3, 1, 2, 1};
  const std::vector<int32_t> matches = {0, kUnmatched, 0, 1};
  EXPECT_THAT(miner.select(boxes, losses, matches), ::testing::ElementsAre(0, 1, 3));
}

TEST(HardExampleMiner, AllocatesNothing) {
  Random random(8);
  const std::vector<float> boxes = random.boxes(1917, 0.1f);
  std::vector<float> losses(1917);
  std::vector<int32_t> matches(1917);
  for (size_t i = 0; i < 1917; ++i) {
    losses[i] = random.uniform(0, 20);
    matches[i] = random.below(50) == 0 ? 0 : kUnmatched;
  }
  HardExampleMiner miner({}, 1917);
  const int64_t before = compute::testing::allocations();
  const auto selected = miner.select(boxes, losses, matches);
  EXPECT_EQ(compute::testing::allocations() - before, 0);
  const auto positives = std::ranges::count_if(
      selected, [&](int32_t i) { return matches[static_cast<size_t>(i)] == 0; });
  EXPECT_GT(positives, 10);
  EXPECT_EQ(static_cast<int64_t>(selected.size()), 4 * positives);
}

}  // namespace
}  // namespace muster::detection::testing
