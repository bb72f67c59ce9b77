#include "trainer/detection/coco_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "tests/unit/trainer/detection/support.h"

// tests/python/check_coco.py compares random cases with pycocotools; what is here can be worked out
// by hand.
namespace muster::detection::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;
using ::testing::ThrowsMessage;

CocoObject object(int32_t label, const CocoBox& box) {
  return {label, box, box.width * box.height, false, false};
}

std::vector<double> values(const CocoMetrics& m) {
  std::vector<double> values = {m.ap,  m.ap50, m.ap75,  m.ap_small, m.ap_medium, m.ap_large,
                                m.ar1, m.ar10, m.ar100, m.ar_small, m.ar_medium, m.ar_large};
  values.insert(values.end(), m.class_ap.begin(), m.class_ap.end());
  return values;
}

const CocoBox kSmall{10, 10, 20, 20}, kMedium{50, 50, 60, 60}, kLarge{100, 0, 200, 100};

TEST(CocoEvaluation, NothingToFindIsMinusOne) {
  CocoEvaluation evaluation({1, 2});
  EXPECT_THAT(values(evaluation.metrics()), ::testing::Each(-1));
  evaluation.add(1, {}, {});
  const std::vector<CocoDetection> found = {{1, 0.5, kSmall}};
  evaluation.add(2, found, {});
  EXPECT_EQ(evaluation.images(), 2u);
  EXPECT_THAT(values(evaluation.metrics()), ::testing::Each(-1));
}

TEST(CocoEvaluation, AllFoundIsOneAndNothingFoundIsZero) {
  const std::vector<CocoObject> objects = {object(1, kSmall), object(2, kLarge)};
  const std::vector<CocoDetection> found = {{1, 0.9, kSmall}, {2, 0.8, kLarge}};
  CocoEvaluation evaluation({1, 2, 3});
  evaluation.add(7, found, objects);
  EXPECT_THAT(values(evaluation.metrics()),
              Pointwise(DoubleNear(1e-12), {1, 1, 1, 1, -1, 1, 1, 1, 1, 1, -1, 1, 1, 1, -1}));
  CocoEvaluation blind({1, 2, 3});
  blind.add(7, {}, objects);
  EXPECT_THAT(values(blind.metrics()), ElementsAre(0, 0, 0, 0, -1, 0, 0, 0, 0, 0, -1, 0, 0, 0, -1));
}

TEST(CocoEvaluation, AFalseDetectionCostsPrecisionWhereItsScoreIsHigher) {
  const std::vector<CocoObject> objects = {object(1, kMedium)};
  for (const double score : {0.5, 0.99}) {
    const std::vector<CocoDetection> found = {{1, 0.9, kMedium}, {1, score, {300, 300, 60, 60}}};
    CocoEvaluation evaluation({1});
    evaluation.add(1, found, objects);
    EXPECT_NEAR(evaluation.metrics().ap, score < 0.9 ? 1 : 0.5, 1e-12);
    EXPECT_EQ(evaluation.metrics().ar1, score < 0.9 ? 1 : 0);
    EXPECT_EQ(evaluation.metrics().ar10, 1);
  }
}

TEST(CocoEvaluation, AnIouCountsForTheThresholdsThatItReaches) {
  // IoU 0.75: six of ten thresholds.
  const std::vector<CocoObject> objects = {object(1, {0, 0, 100, 100})};
  const std::vector<CocoDetection> found = {{1, 0.9, {0, 0, 100, 75}}};
  CocoEvaluation evaluation({1});
  evaluation.add(1, found, objects);
  const CocoMetrics metrics = evaluation.metrics();
  EXPECT_NEAR(metrics.ap, 0.6, 1e-12);
  EXPECT_NEAR(metrics.ap50, 1, 1e-12);
  EXPECT_NEAR(metrics.ap75, 1, 1e-12);
  EXPECT_NEAR(metrics.ar100, 0.6, 1e-12);
}

TEST(CocoEvaluation, DetectionsOfCrowdsAndIgnoredObjectsDoNotCount) {
  std::vector<CocoObject> objects = {object(1, kMedium), object(1, kLarge)};
  const std::vector<CocoDetection> found = {
      {1, 0.9, {110, 10, 50, 50}}, {1, 0.8, {200, 10, 50, 50}}, {1, 0.7, kMedium}};
  auto ap = [&] {
    CocoEvaluation evaluation({1});
    evaluation.add(1, found, objects);
    return evaluation.metrics().ap;
  };
  // Half of the objects is found, with two false ones before.
  EXPECT_NEAR(ap(), 51.0 / 101 / 3, 1e-12);
  objects[1].crowd = true;
  EXPECT_NEAR(ap(), 1, 1e-12);
  // An ignored object is no crowd: the small boxes within it do not match it.
  objects[1].crowd = false;
  objects[1].ignore = true;
  EXPECT_NEAR(ap(), 1.0 / 3, 1e-12);
}

TEST(CocoEvaluation, ImagesMayComeInAnyOrder) {
  Random random(10);
  struct Image {
    int64_t id;
    std::vector<CocoDetection> found;
    std::vector<CocoObject> objects;
  };
  std::vector<Image> images;
  for (int64_t id = 0; id < 30; ++id) {
    Image& image = images.emplace_back(Image{id, {}, {}});
    for (int i = random.below(8); i > 0; --i) {
      const CocoBox box{random.uniform(0, 300), random.uniform(0, 300), random.uniform(10, 200),
                        random.uniform(10, 200)};
      image.objects.push_back(object(1 + random.below(3), box));
      const double score = std::round(random.uniform(0, 4)) / 4;  // many are equal
      image.found.push_back(
          {1 + random.below(3), score, {box.x + 3, box.y, box.width, box.height}});
    }
  }
  CocoEvaluation forwards({1, 2, 3}), backwards({1, 2, 3});
  for (const Image& image : images) forwards.add(image.id, image.found, image.objects);
  std::ranges::reverse(images);
  for (const Image& image : images) backwards.add(image.id, image.found, image.objects);
  EXPECT_EQ(backwards.images(), 30u);
  EXPECT_GT(forwards.metrics().ap, 0.01);
  EXPECT_EQ(values(backwards.metrics()), values(forwards.metrics()));
}

TEST(CocoEvaluation, OtherLabelsAreLeftOut) {
  CocoEvaluation evaluation({2});
  const std::vector<CocoObject> objects = {object(1, kSmall), object(2, kSmall)};
  const std::vector<CocoDetection> found = {{3, 1, kSmall}, {2, 0.5, kSmall}, {-7, 1, kSmall}};
  evaluation.add(1, found, objects);
  EXPECT_THAT(evaluation.metrics().class_ap, ElementsAre(DoubleNear(1, 1e-12)));
}

TEST(CocoEvaluation, TakesWhatIsNoNumber) {
  constexpr double kNo = std::numeric_limits<double>::quiet_NaN();
  const std::vector<CocoObject> objects = {object(1, kMedium), object(1, {kNo, 0, 5, 5}),
                                           object(1, {0, 0, kInfinity, 5})};
  const std::vector<CocoDetection> found = {{1, kNo, {kNo, kNo, kNo, kNo}},
                                            {1, 0.1, kMedium},
                                            {1, 0.9, {0, 0, kInfinity, kInfinity}},
                                            {1, kNo, {50, 50, kNo, 60}},
                                            {1, 0.95, {50, 50, -60, -60}}};
  CocoEvaluation evaluation({1});
  evaluation.add(1, found, objects);
  const CocoMetrics metrics = evaluation.metrics();
  EXPECT_GT(metrics.ap, 0);
  EXPECT_LT(metrics.ap, 1);
}

TEST(CocoEvaluation, TakesManyDetectionsOfAnImage) {
  const std::vector<CocoObject> objects = {object(1, kMedium)};
  std::vector<CocoDetection> found(10000, {1, 0.5, {300, 300, 60, 60}});
  found.back().box = kMedium;
  found.back().score = 0.4;
  CocoEvaluation evaluation({1});
  evaluation.add(1, found, objects);
  EXPECT_EQ(evaluation.metrics().ar100, 0);  // it is not among the best hundred
}

TEST(CocoEvaluation, RefusesWhatItWouldCountTwice) {
  EXPECT_THAT(
      [] {
        CocoEvaluation({1, 5, 1});
      },
      ThrowsMessage<Invalid>(HasSubstr("1 is there twice")));
  CocoEvaluation evaluation({1});
  evaluation.add(4, {}, {});
  EXPECT_THAT([&] { evaluation.add(4, {}, {}); },
              ThrowsMessage<Invalid>(HasSubstr("4 was added before")));
}

}  // namespace
}  // namespace muster::detection::testing
