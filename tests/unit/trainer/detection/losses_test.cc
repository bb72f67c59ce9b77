#include "trainer/detection/losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/unit/trainer/detection/support.h"

namespace muster::detection::testing {
namespace {

using ::testing::Each;

const std::vector<float> kLogits = {0.5f, -1.25f, 3, -40, 20, -30, 0.1f, 90, 0, 0, 0, 0};

void expect_near(const std::vector<float>& values, const std::vector<double>& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-7 + 2e-6 * std::abs(expected[i])) << i;
}

// The numbers are of the formulas in float64, computed by a script.
TEST(Losses, SigmoidIsTheSumOverTheLogits) {
  const std::vector<int32_t> labels = {2, 1, -1};
  std::vector<float> losses(3), gradients(12, 99.0f);
  const std::vector<float> ones = {1, 1, 1}, scales = {1, 0.5f, 2};
  sigmoid_losses(kLogits, labels, ones, losses);
  expect_near(losses, {1.27459342, 140.744397, 2.77258872});
  sigmoid_losses(kLogits, labels, scales, losses);
  expect_near(losses, {1.27459342, 70.3721985, 5.54517744});
  sigmoid_gradients(kLogits, labels, scales, gradients);
  expect_near(gradients,
              {0.62245933, 0.22270014, -0.047425873, 0, 0.5, -0.5, 0.26248959, 0.5, 1, 1, 1, 1});
}

TEST(Losses, SigmoidIsTheFormulaForAnyLogits) {
  Random random(11);
  for (const size_t width : {1u, 3u, 91u, 255u, 600u}) {
    for (const float range : {1e-3f, 1.0f, 15.0f, 120.0f}) {
      std::vector<float> logits(width), losses(1), gradients(width), scores(width);
      for (float& logit : logits) logit = random.uniform(-range, range);
      const std::vector<int32_t> labels = {random.below(static_cast<int>(width))};
      const std::vector<float> one = {1};
      sigmoid_losses(logits, labels, one, losses);
      sigmoid_gradients(logits, labels, one, gradients);
      sigmoid_scores(logits, scores);
      double expected = 0;
      for (size_t i = 0; i < width; ++i) {
        const auto x = static_cast<double>(logits[i]);
        const double target = static_cast<int32_t>(i) == labels[0] ? 1 : 0;
        expected += std::max(x, 0.0) - x * target + std::log1p(std::exp(-std::abs(x)));
        const double share = 1 / (1 + std::exp(-x));
        ASSERT_NEAR(scores[i], share, 3e-7 * share + 1e-37) << x;
        ASSERT_NEAR(gradients[i], share - target, 3e-7) << x;
      }
      ASSERT_NEAR(losses[0], expected, 1e-6 * expected + 1e-15 * static_cast<double>(width))
          << width << " logits to " << range;
    }
  }
}

TEST(Losses, SoftmaxIsTheCrossEntropy) {
  const std::vector<int32_t> labels = {2, 1, 3};
  std::vector<float> losses(3), gradients(12, 99.0f);
  const std::vector<float> ones = {1, 1, 1}, scales = {1, 0.5f, 2};
  softmax_losses(kLogits, labels, ones, 2, losses);
  expect_near(losses, {0.340704529, 60, 1.38629436});
  softmax_gradients(kLogits, labels, scales, 2, gradients);
  expect_near(gradients,
              {0.101891, 0.042474486, -0.14436548, 0, 0, -0.25, 0, 0.25, 0.25, 0.25, 0.25, -0.75});
}

TEST(Losses, SmoothL1IsSquareNearZeroAndLinearBeyondDelta) {
  const std::vector<float> codes = {0.5f, -2, 1, 0, 3, 3, -0.25f, 0.75f};
  const std::vector<float> targets = {0, 0, 0, 0, 1, 3.5f, 0, -0.75f};
  std::vector<float> losses(2), gradients(8, 99.0f);
  const std::vector<float> ones = {1, 1}, scales = {1, 3};
  smooth_l1_losses(codes, targets, ones, 1, losses);
  expect_near(losses, {2.125, 2.65625});
  smooth_l1_losses(codes, targets, ones, 0.5f, losses);
  expect_near(losses, {1.375, 1.65625});
  smooth_l1_gradients(codes, targets, scales, 1, gradients);
  expect_near(gradients, {0.5, -1, 1, 0, 3, -1.5, -0.75, 3});
}

// Compares gradients with central differences of the losses, at each value of some anchors.
void expect_slopes(size_t anchors, size_t width, std::vector<float> values,
                   const std::vector<float>& scales, const std::vector<float>& gradients,
                   const std::function<void(std::span<const float>, std::span<float>)>& losses) {
  constexpr float kStep = 1.0f / 128;
  for (size_t i = 0; i < values.size(); ++i) {
    std::vector<float> above(anchors), below(anchors);
    const float value = values[i];
    values[i] = value + kStep;
    losses(values, above);
    values[i] = value - kStep;
    losses(values, below);
    values[i] = value;
    const size_t anchor = i / width;
    const float slope = (above[anchor] - below[anchor]) / (2 * kStep);
    ASSERT_NEAR(gradients[i], slope, 2e-3 * (1 + std::abs(scales[anchor]))) << i;
  }
}

TEST(Losses, GradientsAreTheSlopes) {
  Random random(5);
  constexpr size_t kAnchors = 7;
  for (const size_t width : {2u, 4u, 91u}) {
    std::vector<float> logits(kAnchors * width), weights(kAnchors);
    for (float& logit : logits) logit = random.uniform(-4, 4);
    for (float& weight : weights) weight = random.uniform(0, 2);
    std::vector<int32_t> labels(kAnchors);
    for (int32_t& label : labels) label = random.below(static_cast<int>(width));
    std::vector<float> gradients(logits.size());
    sigmoid_gradients(logits, labels, weights, gradients);
    expect_slopes(kAnchors, width, logits, weights, gradients,
                  [&](auto x, auto out) { sigmoid_losses(x, labels, weights, out); });
    softmax_gradients(logits, labels, weights, 1.5f, gradients);
    expect_slopes(kAnchors, width, logits, weights, gradients,
                  [&](auto x, auto out) { softmax_losses(x, labels, weights, 1.5f, out); });
    if (width != 4) continue;
    const std::vector<float> targets(logits.size(), 0.3f);
    smooth_l1_gradients(logits, targets, weights, 0.7f, gradients);
    expect_slopes(kAnchors, 4, logits, weights, gradients,
                  [&](auto x, auto out) { smooth_l1_losses(x, targets, weights, 0.7f, out); });
  }
}

TEST(Losses, AnchorsWithoutWeightCountForNothingWhateverTheirLogitsAre) {
  const std::vector<float> logits = {kNan, kInfinity, 1, 2}, none = {0};
  const std::vector<int32_t> labels = {1};
  std::vector<float> losses(1, 99.0f), gradients(4, 99.0f);
  sigmoid_losses(logits, labels, none, losses);
  EXPECT_EQ(losses[0], 0);
  softmax_losses(logits, labels, none, 1, losses);
  EXPECT_EQ(losses[0], 0);
  smooth_l1_losses(logits, logits, none, 1, losses);
  EXPECT_EQ(losses[0], 0);
  sigmoid_gradients(logits, labels, none, gradients);
  EXPECT_THAT(gradients, Each(0));
  gradients.assign(4, 99.0f);
  softmax_gradients(logits, labels, none, 1, gradients);
  EXPECT_THAT(gradients, Each(0));
  gradients.assign(4, 99.0f);
  smooth_l1_gradients(logits, logits, none, 1, gradients);
  EXPECT_THAT(gradients, Each(0));
}

TEST(Losses, ShowThatALogitIsNoNumber) {
  const std::vector<float> logits = {0, kNan, 1, 2}, one = {1}, targets = {0, 0, 0, 0};
  const std::vector<int32_t> labels = {2};
  std::vector<float> losses(1);
  sigmoid_losses(logits, labels, one, losses);
  EXPECT_TRUE(std::isnan(losses[0]));
  softmax_losses(logits, labels, one, 1, losses);
  EXPECT_TRUE(std::isnan(losses[0]));
  smooth_l1_losses(logits, targets, one, 1, losses);
  EXPECT_TRUE(std::isnan(losses[0]));
}

TEST(Losses, StayExactForLogitsFarFromZero) {
  const std::vector<float> sure = {-200, 200, -kInfinity}, wrong = {300, -300, -300}, one = {1};
  const std::vector<int32_t> labels = {1};
  std::vector<float> losses(1);
  sigmoid_losses(sure, labels, one, losses);
  EXPECT_EQ(losses[0], 0);
  sigmoid_losses(wrong, labels, one, losses);
  EXPECT_EQ(losses[0], 600);
  // More logits than one product of terms can hold.
  const std::vector<float> zeros(3000);
  sigmoid_losses(zeros, labels, one, losses);
  EXPECT_NEAR(losses[0], 3000 * std::log(2.0), 1e-3);
}

TEST(Losses, ScoresAreShares) {
  std::vector<float> scores = {0, 2, -2, 100, -100, kNan};
  sigmoid_scores(scores, scores);
  EXPECT_FLOAT_EQ(scores[0], 0.5f);
  EXPECT_FLOAT_EQ(scores[1], 0.88079708f);
  EXPECT_FLOAT_EQ(scores[2], 0.11920292f);
  EXPECT_EQ(scores[3], 1);
  EXPECT_NEAR(scores[4], 0, 1e-37);
  EXPECT_TRUE(std::isnan(scores[5]));
  scores = {0, 0, 500, 0};
  softmax_scores(scores, 2, 1, scores);
  EXPECT_EQ(scores, (std::vector<float>{0.5f, 0.5f, 1, 0}));
}

}  // namespace
}  // namespace muster::detection::testing
