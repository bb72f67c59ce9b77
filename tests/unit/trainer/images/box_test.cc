#include "trainer/images/box.h"

#include <cmath>

#include "gmock/gmock.h"
#include "trainer/images/flip.h"

namespace muster::images {
namespace {

using testing::ElementsAre;

constexpr float kInfinity = HUGE_VALF;

Box box(float ymin, float xmin, float ymax, float xmax) {
  return {.ymin = ymin, .xmin = xmin, .ymax = ymax, .xmax = xmax};
}

TEST(KeepUsable, CutsAndRemovesAndCounts) {
  struct Row {
    Box given;
    std::vector<Box> kept;
    BoxProblems problems;
  };
  for (const Row& row : std::initializer_list<Row>{
           {box(0, 0, 1, 1), {box(0, 0, 1, 1)}, {}},
           {box(0.25f, 0, 0.5f, 1 + 1e-7f), {box(0.25f, 0, 0.5f, 1)}, {}},
           {box(-0.5f, 0.5f, 0.5f, 1.5f), {box(0, 0.5f, 0.5f, 1)}, {.outside = 1}},
           {box(0.5f, 0.5f, 0.5f, 0.75f), {}, {.no_area = 1}},
           {box(0.5f, 0.5f, 0.25f, 0.75f), {}, {.no_area = 1}},
           {box(1.5f, 1.5f, 2, 2), {}, {.no_area = 1}},
           {box(2, 2, 3, 3), {}, {.far_outside = 1}},
           {box(10, 6, 29, 32), {}, {.far_outside = 1}},
           {box(0, NAN, 1, 1), {}, {.not_finite = 1}},
           {box(0, 0, kInfinity, 1), {}, {.not_finite = 1}},
       }) {
    std::vector<Box> boxes = {row.given};
    EXPECT_EQ(keep_usable(boxes), row.problems);
    EXPECT_EQ(boxes, row.kept);
  }
}

TEST(KeepUsable, TakesTenThousandBoxesInTheirOrder) {
  std::vector<Box> boxes;
  for (int i = 0; i < 10000; ++i) boxes.push_back(box(0, 0, i % 2 == 0 ? 0.5f : NAN, 1));
  for (int i = 0; i < 10000; ++i) boxes[static_cast<size_t>(i)].label = i;
  EXPECT_EQ(keep_usable(boxes).not_finite, 5000u);
  ASSERT_EQ(boxes.size(), 5000u);
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(boxes[static_cast<size_t>(i)].label, 2 * i);
}

// The corners that are nearest to the top and left of what is seen.
TEST(Turn, MovesABoxAsExifTurnsItsImage) {
  const Box stored = box(0.125f, 0.25f, 0.375f, 0.75f);
  const Box seen[] = {stored,
                      box(0.125f, 0.25f, 0.375f, 0.75f),
                      box(0.625f, 0.25f, 0.875f, 0.75f),
                      box(0.625f, 0.25f, 0.875f, 0.75f),
                      box(0.25f, 0.125f, 0.75f, 0.375f),
                      box(0.25f, 0.625f, 0.75f, 0.875f),
                      box(0.25f, 0.625f, 0.75f, 0.875f),
                      box(0.25f, 0.125f, 0.75f, 0.375f)};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Box turned = stored;
    turn(turned, orientation);
    EXPECT_EQ(turned, seen[orientation - 1]) << orientation;
  }
}

TEST(Flip, MirrorsBoxes) {
  std::vector<Box> boxes = {box(0.25f, 0, 0.5f, 0.75f)};
  flip(boxes);
  EXPECT_THAT(boxes, ElementsAre(box(0.25f, 0.25f, 0.5f, 1)));
}

}  // namespace
}  // namespace muster::images
