#include "trainer/detection/box.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/detection/support.h"

namespace muster::detection::testing {
namespace {

TEST(Box, IouIsTheCommonAreaByTheWholeArea) {
  struct Case {
    const char* what;
    Box a, b;
    float expected;
  };
  const Box unit{0, 0, 1, 1};
  const std::vector<Case> cases = {
      {"the same", unit, unit, 1},
      {"half of it", unit, {0, 0, 0.5f, 1}, 0.5f},
      {"a quarter of each", unit, {0.5f, 0.5f, 1.5f, 1.5f}, 0.25f / 1.75f},
      {"a border in common", unit, {0, 1, 1, 2}, 0},
      {"apart", unit, {5, 5, 6, 6}, 0},
      {"far outside of the image", {7, -9, 9, -5}, {7, -9, 9, -7}, 0.5f},
      {"no area", unit, {0.5f, 0.5f, 0.5f, 0.7f}, 0},
      {"two without area", {}, {}, 0},
      {"ymin and ymax exchanged", unit, {1, 0, 0, 1}, 0},
      {"all exchanged", unit, {1, 1, 0, 0}, 0},
      {"NaN first", unit, {kNan, 0, 1, 1}, 0},
      {"NaN last", unit, {0, 0, 1, kNan}, 0},
      {"infinite", unit, {-kInfinity, 0, kInfinity, 1}, 0},
      {"too large for a float", {0, 0, 1e30f, 1e30f}, {0, 0, 1e30f, 1e30f}, 0},
  };
  for (const Case& one : cases) {
    EXPECT_FLOAT_EQ(iou(one.a, one.b), one.expected) << one.what;
    EXPECT_FLOAT_EQ(iou(one.b, one.a), one.expected) << one.what << ", the other way round";
  }
}

TEST(Box, IouIsFromZeroToOneForAnything) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const float value = iou(random.box(), i % 2 == 0 ? random.box() : random.odd_box());
    EXPECT_TRUE(value >= 0 && value <= 1) << value;
  }
}

TEST(Box, ClippingKeepsWhatLiesInTheWindow) {
  const Box window{0, 0, 1, 1};
  EXPECT_EQ(clip({0.2f, 0.3f, 0.4f, 0.5f}, window), (Box{0.2f, 0.3f, 0.4f, 0.5f}));
  EXPECT_EQ(clip({-1, 0.3f, 2, 0.5f}, window), (Box{0, 0.3f, 1, 0.5f}));
  EXPECT_EQ(clip({-kInfinity, -kInfinity, kInfinity, kInfinity}, window), window);
  EXPECT_EQ(area(clip({2, 2, 3, 3}, window)), 0);
}

TEST(Box, ListsHoldBoxesOneAfterAnother) {
  std::vector<float> boxes(8);
  put_box(boxes, 1, {1, 2, 3, 4});
  EXPECT_EQ(boxes, (std::vector<float>{0, 0, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(box_at(boxes, 1), (Box{1, 2, 3, 4}));
  EXPECT_EQ(box_count(boxes), 2u);
}

}  // namespace
}  // namespace muster::detection::testing
