#include "trainer/images/crop.h"

#include <cmath>
#include <optional>

#include "gmock/gmock.h"
#include "tests/unit/trainer/images/fixture.h"

namespace muster::images {
namespace {

using testing::ElementsAre;

Box boundaries(float ymin, float xmin, float ymax, float xmax, int32_t label = 0) {
  return {.ymin = ymin, .xmin = xmin, .ymax = ymax, .xmax = xmax, .label = label};
}

// A simple generator (xorshift) of its own: nothing here depends on which numbers come.
class Any : public RandomNumbers {
 public:
  explicit Any(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15u + 1) {}
  double uniform() override { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }
  uint64_t below(uint64_t bound) override { return next() % bound; }

 private:
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  uint64_t state_;
};

TEST(CropBoxes, KeepsWhatIsWithinTheWindow) {
  const Window window{.top = 20, .left = 50, .height = 40, .width = 100};  // of 100 x 200
  struct Row {
    Box given;
    float least_overlap;
    std::optional<Box> kept;
  };
  for (const Row& row : std::initializer_list<Row>{
           {boundaries(0.2f, 0.25f, 0.6f, 0.75f), 1, boundaries(0, 0, 1, 1)},
           {boundaries(0.3f, 0.375f, 0.4f, 0.5f), 1, boundaries(0.25f, 0.25f, 0.5f, 0.5f)},
           {boundaries(0.0f, 0.25f, 0.4f, 0.75f), 0.49f,
            boundaries(0, 0, 0.5f, 1)},  // a half is within
           {boundaries(0.0f, 0.25f, 0.4f, 0.75f), 0.51f, {}},
           {boundaries(0.0f, 0.0f, 1.0f, 1.0f), 0.19f,
            boundaries(0, 0, 1, 1)},  // a fifth is within
           {boundaries(0.0f, 0.0f, 1.0f, 1.0f), 0.21f, {}},
           {boundaries(0.0f, 0.0f, 0.2f, 1.0f), 0, {}},  // touches the window
           {boundaries(0.7f, 0.25f, 0.9f, 0.75f), 0, {}},
       }) {
    std::vector<Box> boxes = {row.given};
    crop_boxes(boxes, window, 100, 200, row.least_overlap);
    ASSERT_EQ(boxes.size(), row.kept ? 1u : 0u) << row.given.ymin << " " << row.least_overlap;
    if (!row.kept) continue;
    EXPECT_NEAR(boxes[0].ymin, row.kept->ymin, 1e-6);
    EXPECT_NEAR(boxes[0].xmin, row.kept->xmin, 1e-6);
    EXPECT_NEAR(boxes[0].ymax, row.kept->ymax, 1e-6);
    EXPECT_NEAR(boxes[0].xmax, row.kept->xmax, 1e-6);
  }
}

TEST(SsdCrop, HasTheKindsOfTheDetectionApi) {
  std::vector<float> covered;
  for (const CropKind& kind : SsdCrop().kinds) {
    covered.push_back(kind.least_covered);
    EXPECT_EQ(kind.least_overlap, kind.least_covered);
    EXPECT_EQ(kind.least_aspect, 0.5f);
    EXPECT_EQ(kind.most_aspect, 2.0f);
    EXPECT_EQ(kind.least_area, 0.1f);
    EXPECT_EQ(kind.most_area, 1.0f);
    EXPECT_EQ(kind.keep_image, 0.15f);
  }
  EXPECT_THAT(covered, ElementsAre(0.0f, 0.1f, 0.3f, 0.5f, 0.7f, 0.9f, 1.0f));
}

TEST(RandomCrop, LeavesTheImageWholeWithItsProbability) {
  const std::vector<Box> boxes = {boundaries(0.1f, 0.1f, 1.5f, 0.2f, 7)};
  std::vector<Box> kept = boxes;
  Scripted numbers({0.99, 0.15});  // the kind, and whether
  EXPECT_EQ(random_crop(SsdCrop(), 48, 64, kept, numbers), (Window{0, 0, 48, 64}));
  EXPECT_EQ(kept, boxes);
  EXPECT_EQ(numbers.taken(), 2u);
}

// The numbers: kind 0, crop, aspect, height, top, left.
TEST(RandomCrop, TakesTheWindowThatTheNumbersGive) {
  SsdCrop crop;
  crop.kinds = {{.least_aspect = 1, .most_aspect = 1, .least_area = 0.25f, .most_area = 0.25f}};
  std::vector<Box> boxes = {boundaries(0.5f, 0.5f, 0.75f, 1.0f, 3)};
  Scripted numbers({0, 0.5, 0.5, 0.5, 0.5});
  // A square of a quarter of 100 x 100 has 50 rows, so no number is taken for its height.
  EXPECT_EQ(random_crop(crop, 100, 100, boxes, numbers), (Window{25, 25, 50, 50}));
  EXPECT_EQ(numbers.taken(), 5u);
  EXPECT_THAT(boxes, ElementsAre(boundaries(0.5f, 0.5f, 1.0f, 1.0f, 3)));
}

TEST(RandomCrop, KeepsToTheBoundsOfItsKind) {
  for (const CropKind& bounds : SsdCrop().kinds) {
    SsdCrop crop;
    crop.kinds = {bounds};
    crop.kinds[0].keep_image = 0;
    size_t cropped = 0;
    for (uint64_t seed = 0; seed < 300; ++seed) {
      // All numbers are multiples of powers of two, so that no rounding decides what stays.
      std::vector<Box> kept = {boundaries(0.125f, 0.25f, 0.5f, 0.5f),
                               boundaries(0.625f, 0.5f, 0.875f, 0.875f)};
      Any numbers(seed);
      const size_t height = 128, width = 256;
      const Window window = random_crop(crop, height, width, kept, numbers);
      ASSERT_LE(window.top + window.height, height);
      ASSERT_LE(window.left + window.width, width);
      const auto pixels = static_cast<double>(window.height * window.width);
      EXPECT_GE(pixels, 0.1 * height * width - 1);
      if (window == Window{0, 0, height, width}) continue;
      ++cropped;
      const double aspect = static_cast<double>(window.width) / static_cast<double>(window.height);
      EXPECT_GT(aspect, 0.48);
      EXPECT_LT(aspect, 2.05);
      // One of the objects is covered as far as the kind asks, so it is still there.
      EXPECT_TRUE(bounds.least_covered == 0 || !kept.empty()) << seed;
      for (const Box& one : kept) {
        EXPECT_GE(one.ymin, 0);
        EXPECT_GE(one.xmin, 0);
        EXPECT_LE(one.ymax, 1);
        EXPECT_LE(one.xmax, 1);
        EXPECT_GT(one.height(), 0);
        EXPECT_GT(one.width(), 0);
      }
    }
    EXPECT_GT(cropped, 100u) << bounds.least_covered;
  }
}

TEST(RandomCrop, TakesImagesOfAnySizeWithAndWithoutBoxes) {
  for (const size_t height : {1u, 2u, 7u, 1000u}) {
    for (const size_t width : {1u, 3u, 900u}) {
      for (uint64_t seed = 0; seed < 100; ++seed) {
        std::vector<Box> none, one = {boundaries(0, 0, 1, 1)};
        Any numbers(seed);
        for (std::vector<Box>* boxes : {&none, &one}) {
          const Window window = random_crop(SsdCrop(), height, width, *boxes, numbers);
          ASSERT_GE(window.height, 1u);
          ASSERT_GE(window.width, 1u);
          ASSERT_LE(window.top + window.height, height);
          ASSERT_LE(window.left + window.width, width);
        }
      }
    }
  }
}

TEST(RandomCrop, IsTheSameForTheSameNumbers) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Box> first = {boundaries(0.1f, 0.2f, 0.4f, 0.5f)}, second = first;
    Any numbers(seed), again(seed);
    EXPECT_EQ(random_crop(SsdCrop(), 48, 64, first, numbers),
              random_crop(SsdCrop(), 48, 64, second, again));
    EXPECT_EQ(first, second);
  }
}

}  // namespace
}  // namespace muster::images
