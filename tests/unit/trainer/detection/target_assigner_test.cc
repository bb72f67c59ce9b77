#include "trainer/detection/target_assigner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/support.h"
#include "tests/unit/trainer/detection/support.h"
#include "trainer/detection/anchors.h"

namespace muster::detection::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointwise;

// Memory for the targets of some anchors.
struct Targets {
  explicit Targets(size_t anchors)
      : matches(anchors, 99),
        labels(anchors, 99),
        class_weights(anchors, 99),
        codes(4 * anchors, 99),
        code_weights(anchors, 99) {}
  AnchorTargets all() { return {matches, labels, class_weights, codes, code_weights}; }

  std::vector<int32_t> matches, labels;
  std::vector<float> class_weights, codes, code_weights;
};

const std::vector<float> kAnchors = {0,    0,    0.5f, 0.5f,  // left above
                                     0,    0.5f, 0.5f, 1,     // right above
                                     0.5f, 0,    1,    0.5f,  // left below
                                     0.5f, 0.5f, 1,    1};    // right below

TEST(TargetAssigner, TeachesEachAnchorTheObjectThatItIsMatchedWith) {
  // The first object is an anchor; the second has an IoU of 0.375 with the last one, and is given
  // to it because it has no better one.
  const std::vector<float> boxes = {0, 0, 0.5f, 0.5f, 0.5f, 0.5f, 0.75f, 0.875f};
  const std::vector<int32_t> labels = {7, 9};
  const std::vector<float> weights = {1, 0.25f};
  AssignmentSettings settings;
  settings.negative_class_weight = 0.5f;
  TargetAssigner assigner(kAnchors, settings);
  Targets targets(4);
  assigner.assign({boxes, labels, weights}, targets.all());
  EXPECT_THAT(targets.matches, ElementsAre(0, kUnmatched, kUnmatched, 1));
  EXPECT_THAT(targets.labels, ElementsAre(7, 0, 0, 9));
  EXPECT_THAT(targets.class_weights, ElementsAre(1, 0.5f, 0.5f, 0.25f));
  EXPECT_THAT(targets.code_weights, ElementsAre(1, 0, 0, 0.25f));
  // 5 ln(1/2) and 5 ln(3/4); the centre is an eighth of an image further up, a quarter of the
  // anchor, and a sixteenth further left.
  EXPECT_THAT(targets.codes, Pointwise(::testing::FloatNear(1e-5f),
                                       {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f,
                                        0.0f, 0.0f, -2.5f, -1.25f, -3.465736f, -1.438410f}));
}

TEST(TargetAssigner, IgnoredAnchorsHaveNoWeight) {
  AssignmentSettings settings;
  settings.matcher = {0.6f, 0.4f, true, false};
  settings.unmatched_label = -1;
  const std::vector<float> boxes = {0, 0, 0.5f, 0.25f};
  const std::vector<int32_t> labels = {3};
  TargetAssigner assigner(kAnchors, settings);
  Targets targets(4);
  assigner.assign({boxes, labels, {}}, targets.all());
  EXPECT_THAT(targets.matches, ElementsAre(kIgnored, kUnmatched, kUnmatched, kUnmatched));
  EXPECT_THAT(targets.labels, ElementsAre(-1, -1, -1, -1));
  EXPECT_THAT(targets.class_weights, ElementsAre(0, 1, 1, 1));
  EXPECT_THAT(targets.code_weights, ElementsAre(0, 0, 0, 0));
}

TEST(TargetAssigner, NoObjectsMeanBackground) {
  TargetAssigner assigner(kAnchors, {});
  Targets targets(4);
  assigner.assign({}, targets.all());
  EXPECT_THAT(targets.matches, ElementsAre(kUnmatched, kUnmatched, kUnmatched, kUnmatched));
  EXPECT_THAT(targets.class_weights, ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(targets.codes, std::vector<float>(16));
}

TEST(TargetAssigner, AnObjectOfWeightZeroClaimsNoAnchor) {
  const std::vector<float> boxes = {0, 0, 0.1f, 0.1f};
  const std::vector<int32_t> labels = {1};
  TargetAssigner assigner(kAnchors, {});
  Targets targets(4);
  const std::vector<float> nothing = {0};
  assigner.assign({boxes, labels, nothing}, targets.all());
  EXPECT_EQ(targets.matches[0], kUnmatched);
  assigner.assign({boxes, labels, {}}, targets.all());
  EXPECT_EQ(targets.matches[0], 0);
}

TEST(TargetAssigner, ObjectsThatNoAnchorCanShowAreMatchedWithNone) {
  const std::vector<Box> odd = {
      {0.2f, 0.2f, 0.2f, 0.4f},   {0.4f, 0.2f, 0.2f, 0.4f},
      {0.4f, 0.4f, 0.2f, 0.2f},   {kNan, 0.2f, 0.4f, 0.4f},
      {0.2f, 0.2f, 0.4f, kNan},   {-kInfinity, 0, kInfinity, 1},
      {0.2f, 0.2f, kInfinity, 1}, {5, 5, 6, 6},
  };
  const std::vector<int32_t> labels = {1, 2};
  TargetAssigner assigner(kAnchors, {});
  for (const Box& box : odd) {
    // The odd object is first, so that it would win a tie.
    std::vector<float> boxes = {0, 0, 0, 0, 0, 0, 0.5f, 0.5f};
    put_box(boxes, 0, box);
    Targets targets(4);
    assigner.assign({boxes, labels, {}}, targets.all());
    EXPECT_THAT(targets.matches, ElementsAre(1, kUnmatched, kUnmatched, kUnmatched)) << box.ymin;
  }
}

TEST(TargetAssigner, TakesTenThousandObjectsAndAllocatesNothing) {
  const std::vector<FeatureMap> maps = {{19, 19}, {10, 10}, {5, 5}, {3, 3}, {2, 2}, {1, 1}};
  const std::vector<float> anchors = ssd_anchors({}, maps, 300, 300);
  TargetAssigner assigner(anchors, {});
  ASSERT_EQ(assigner.anchors(), 1917u);
  Random random(4);
  const std::vector<float> boxes = random.boxes(10000, 0.2f);
  const std::vector<int32_t> labels(10000, 5);
  Targets targets(1917);
  const int64_t before = compute::testing::allocations();
  assigner.assign({boxes, labels, {}}, targets.all());
  EXPECT_EQ(compute::testing::allocations() - before, 0);
  int64_t matched = 0;
  for (size_t i = 0; i < 1917; ++i) {
    if (targets.matches[i] < 0) continue;
    ++matched;
    const auto object = static_cast<size_t>(targets.matches[i]);
    ASSERT_GT(iou(box_at(anchors, i), box_at(boxes, object)), 0);
    for (size_t code = 4 * i; code < 4 * i + 4; ++code)
      ASSERT_TRUE(std::isfinite(targets.codes[code])) << object;
  }
  EXPECT_GT(matched, 500);
}

}  // namespace
}  // namespace muster::detection::testing
