#include "trainer/detection/suppressor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/trainer/compute/support.h"
#include "tests/unit/trainer/detection/support.h"

namespace muster::detection::testing {
namespace {

std::vector<int32_t> select(Suppressor& suppressor, std::span<const float> boxes,
                            std::span<const float> scores, const SuppressionSettings& settings) {
  suppressor.set_boxes(boxes);
  const auto selected = suppressor.select(scores, settings);
  return {selected.begin(), selected.end()};
}

// The boxes and most of the expectations are those that TensorFlow tests its own operation with.
TEST(Suppressor, SelectsAsTensorFlowDoes) {
  const std::vector<float> boxes = {0, 0,  1, 1,  0, 0.1f,  1, 1.1f,  0, -0.1f, 1, 0.9f,
                                    0, 10, 1, 11, 0, 10.1f, 1, 11.1f, 0, 100,   1, 101};
  std::vector<float> exchanged = boxes;
  for (const size_t i : {0u, 12u}) {
    std::swap(exchanged[i], exchanged[i + 2]);
    std::swap(exchanged[i + 1], exchanged[i + 3]);
  }
  std::swap(exchanged[4], exchanged[6]);
  const std::vector<float> scores = {0.9f, 0.75f, 0.6f, 0.95f, 0.5f, 0.3f};
  const std::vector<float> equal(6, 0.5f);
  const std::vector<float> odd = {0.9f, kNan, 0.6f, kInfinity, -kInfinity, -0.3f};
  constexpr float kAny = -kInfinity;
  struct Case {
    const char* what;
    std::vector<float> boxes, scores;
    SuppressionSettings settings;
    std::vector<int32_t> expected;
  };
  const std::vector<Case> cases = {
      {"three clusters", boxes, scores, {kAny, 0.5f, 3}, {3, 0, 5}},
      {"at most two", boxes, scores, {kAny, 0.5f, 2}, {3, 0}},
      {"none at all", boxes, scores, {kAny, 0.5f, 0}, {}},
      {"at most thirty", boxes, scores, {kAny, 0.5f, 30}, {3, 0, 5}},
      {"a threshold of scores", boxes, scores, {0.4f, 0.5f, 30}, {3, 0}},
      {"a score must exceed it", boxes, equal, {0.5f, 0.5f, 30}, {}},
      {"exchanged corners", exchanged, scores, {kAny, 0.5f, 3}, {3, 0, 5}},
      {"nothing is suppressed at 1", boxes, scores, {kAny, 1, 30}, {3, 0, 1, 2, 4, 5}},
      {"equal scores: the lower index", boxes, equal, {kAny, 0.5f, 30}, {0, 3, 5}},
      {"zeros of both signs are equal",
       {0, 0, 1, 1, 5, 5, 6, 6},
       {-0.0f, 0.0f},
       {kAny, 0.5f, 30},
       {0, 1}},
      {"scores that are no numbers", boxes, odd, {kAny, 0.5f, 30}, {3, 0, 5}},
      {"an IoU equal to the threshold does not suppress",
       {0, 0, 1, 2, 0, 0, 1, 1},
       {0.9f, 0.8f},
       {kAny, 0.5f, 5},
       {0, 1}},
      {"one above it does", {0, 0, 1, 2, 0, 0, 1, 1}, {0.9f, 0.8f}, {kAny, 0.49f, 5}, {0}},
      {"no boxes", {}, {}, {kAny, 0.5f, 30}, {}},
      {"a suppressed box does not suppress",
       {0, 0, 1, 3, 0, 1, 1, 4, 0, 2, 1, 5},
       {0.9f, 0.8f, 0.7f},
       {kAny, 0.4f, 30},
       {0, 2}},
      {"boxes without area, or without end",
       {0, 0, 1, 1, 0, 0, 1, 0,    0,          0, 1, 0, kNan, 0, 1,         1,
        0, 0, 1, 1, 0, 0, 1, kNan, -kInfinity, 0, 1, 1, 0,    0, kInfinity, 1},
       {0.9f, 0.8f, 0.7f, 0.6f, 0.5f, 0.4f, 0.3f, 0.2f},
       {kAny, 0.5f, 30},
       {0, 1, 2, 3, 5, 6, 7}},
  };
  Suppressor suppressor(6);
  for (const Case& one : cases)
    EXPECT_EQ(select(suppressor, one.boxes, one.scores, one.settings), one.expected) << one.what;
}

// The definition: each box against each.
std::vector<int32_t> naive(std::span<const float> boxes, std::span<const float> scores,
                           const SuppressionSettings& settings) {
  std::vector<int32_t> order, selected;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > settings.score_threshold) order.push_back(static_cast<int32_t>(i));
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](int32_t i) { return scores[static_cast<size_t>(i)]; });
  auto upright = [&](int32_t i) {
    const Box box = box_at(boxes, static_cast<size_t>(i));
    return Box{std::min(box.ymin, box.ymax), std::min(box.xmin, box.xmax),
               std::max(box.ymin, box.ymax), std::max(box.xmin, box.xmax)};
  };
  for (const int32_t i : order) {
    if (selected.size() == settings.max_boxes) break;
    if (std::ranges::none_of(selected, [&](int32_t other) {
          return iou(upright(i), upright(other)) > settings.iou_threshold;
        })) {
      selected.push_back(i);
    }
  }
  return selected;
}

TEST(Suppressor, IsTheDefinitionForAnyBoxes) {
  Random random(6);
  Suppressor suppressor(10);  // and takes more
  for (int i = 0; i < 400; ++i) {
    const int count = random.below(i < 350 ? 60 : 400);
    std::vector<float> boxes = random.boxes(count, i % 3 == 0 ? 0.3f : 0);
    std::vector<float> scores;
    for (int box = 0; box < count; ++box) {
      const float score = random.uniform(-1, 1);
      scores.push_back(i % 2 == 0 ? score : std::round(4 * score) / 4);
      // Some boxes nearly are the one before.
      if (box > 0 && random.below(3) == 0) {
        const Box before = box_at(boxes, static_cast<size_t>(box) - 1);
        const float step = random.uniform(0, 0.01f);
        put_box(boxes, static_cast<size_t>(box),
                {before.ymin, before.xmin + step, before.ymax, before.xmax + step});
      }
    }
    const float thresholds[] = {0, 0.3f, 0.6f, 0.9f, 0.99f, 1};
    const SuppressionSettings settings{i % 5 == 0 ? 0.2f : -kInfinity, thresholds[random.below(6)],
                                       i % 7 == 0 ? 10u : 1000u};
    ASSERT_EQ(select(suppressor, boxes, scores, settings), naive(boxes, scores, settings)) << i;
  }
}

TEST(Suppressor, AllocatesNothingForAsManyBoxesAsItWasMadeFor) {
  Random random(7);
  const std::vector<float> boxes = random.boxes(10000, 0.1f);
  std::vector<float> scores(10000);
  for (float& score : scores) score = random.uniform(0, 1);
  Suppressor suppressor(10000);
  const int64_t before = compute::testing::allocations();
  suppressor.set_boxes(boxes);
  const auto selected = suppressor.select(scores, {0, 0.99f, 3000});
  EXPECT_EQ(compute::testing::allocations() - before, 0);
  EXPECT_EQ(selected.size(), 3000u);
}

}  // namespace
}  // namespace muster::detection::testing
