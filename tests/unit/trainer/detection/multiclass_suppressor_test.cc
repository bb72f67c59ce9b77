#include "trainer/detection/multiclass_suppressor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "tests/unit/trainer/compute/support.h"
#include "tests/unit/trainer/detection/support.h"

namespace muster::detection::testing {
namespace {

struct Found {
  int32_t label, anchor;
  friend bool operator==(const Found&, const Found&) = default;
};

std::vector<Found> select(MulticlassSuppressor& suppressor, std::span<const float> boxes,
                          std::span<const float> scores) {
  std::vector<Found> found;
  for (const Detection& one : suppressor.select(boxes, scores))
    found.push_back({one.label, one.anchor});
  return found;
}

TEST(MulticlassSuppressor, SuppressesWithinAClassAndTakesTheBestOfAll) {
  // The second box nearly is the first; the third reaches beyond the image, the fourth is outside.
  const std::vector<float> boxes = {0,    0,    0.5f, 0.5f, 0,    0.01f, 0.5f, 0.51f,
                                    0.5f, 0.5f, 1.5f, 1.5f, 1.5f, 0,     2,    1};
  // Columns: the background, and three classes.
  const std::vector<float> scores = {1, 0.9f, 0.2f, 0, 1, 0.8f, 0.7f, 0,
                                     1, 0.3f, 0.7f, 0, 1, 0.6f, 0.6f, 0};
  MulticlassSuppressor all({}, 4, 4);
  EXPECT_EQ(select(all, boxes, scores), (std::vector<Found>{{1, 0}, {2, 1}, {2, 2}, {1, 2}}));
  const auto detections = all.select(boxes, scores);
  EXPECT_EQ(detections[1].score, 0.7f);
  EXPECT_EQ(detections[2].box, (Box{0.5f, 0.5f, 1, 1}));

  MulticlassSuppressor two({.max_total_detections = 2}, 4, 4);
  EXPECT_EQ(select(two, boxes, scores), (std::vector<Found>{{1, 0}, {2, 1}}));
  MulticlassSuppressor none({.max_total_detections = 0}, 4, 4);
  EXPECT_EQ(select(none, boxes, scores), (std::vector<Found>{}));
  MulticlassSuppressor one_of_each({.max_detections_per_class = 1}, 4, 4);
  EXPECT_EQ(select(one_of_each, boxes, scores), (std::vector<Found>{{1, 0}, {2, 1}}));
  MulticlassSuppressor threshold({.score_threshold = 0.7f}, 4, 4);
  EXPECT_EQ(select(threshold, boxes, scores), (std::vector<Found>{{1, 0}}));
  MulticlassSuppressor background({.max_total_detections = 2, .first_label = 0}, 4, 4);
  EXPECT_EQ(select(background, boxes, scores), (std::vector<Found>{{0, 0}, {0, 2}}));
  EXPECT_EQ(select(all, {}, {}), (std::vector<Found>{}));
}

// The definition: all classes one by one, then everything sorted.
std::vector<Found> naive(const MulticlassSettings& settings, std::span<const float> boxes,
                         std::span<const float> scores, size_t columns) {
  struct Candidate {
    float score;
    Found found;
  };
  std::vector<Candidate> all;
  Suppressor suppressor(0);
  suppressor.set_boxes(boxes);
  for (size_t label = 1; label < columns; ++label) {
    std::vector<float> class_scores;
    for (size_t i = label; i < scores.size(); i += columns) class_scores.push_back(scores[i]);
    for (const int32_t i : suppressor.select(
             class_scores, {settings.score_threshold, settings.iou_threshold,
                            static_cast<size_t>(settings.max_detections_per_class)})) {
      const Box box = clip(box_at(boxes, static_cast<size_t>(i)), settings.window);
      if (!(box.ymax > box.ymin && box.xmax > box.xmin)) continue;
      all.push_back({class_scores[static_cast<size_t>(i)], {static_cast<int32_t>(label), i}});
    }
  }
  std::ranges::stable_sort(all, std::greater<>(), &Candidate::score);
  std::vector<Found> found;
  for (const Candidate& one : all)
    if (found.size() < static_cast<size_t>(settings.max_total_detections))
      found.push_back(one.found);
  return found;
}

TEST(MulticlassSuppressor, IsTheDefinitionForAnyBoxes) {
  Random random(9);
  constexpr size_t kColumns = 6;
  const MulticlassSettings settings{.score_threshold = 0.1f,
                                    .iou_threshold = 0.6f,
                                    .max_detections_per_class = 8,
                                    .max_total_detections = 15};
  MulticlassSuppressor suppressor(settings, 100, kColumns);
  for (int i = 0; i < 200; ++i) {
    const int count = random.below(100);
    const std::vector<float> boxes = random.boxes(count, i % 2 == 0 ? 0.2f : 0);
    std::vector<float> scores(static_cast<size_t>(count) * kColumns);
    for (float& score : scores) {
      score = random.uniform(0, 1);
      if (i % 3 == 0) score = std::round(10 * score) / 10;
      if (random.below(50) == 0) score = kNan;
    }
    const int64_t before = compute::testing::allocations();
    const auto detections = suppressor.select(boxes, scores);
    EXPECT_EQ(compute::testing::allocations() - before, 0);
    std::vector<Found> found;
    for (const Detection& one : detections) {
      found.push_back({one.label, one.anchor});
      ASSERT_GT(area(one.box), 0);
      ASSERT_EQ(clip(one.box, settings.window), one.box);
    }
    ASSERT_EQ(found, naive(settings, boxes, scores, kColumns)) << i;
  }
}

}  // namespace
}  // namespace muster::detection::testing
