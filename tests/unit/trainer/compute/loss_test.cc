#include "trainer/compute/loss.h"

#include <gtest/gtest.h>

#include "tests/unit/trainer/compute/sums.h"

namespace muster::compute::testing {
namespace {

TEST(Metrics, AreTheLossAndWhatItsKindSays) {
  const LossSums sums = classified(20, 8, 10);
  const auto classification = metrics_of(Loss::softmax_cross_entropy, sums);
  ASSERT_EQ(classification.size(), 2u);
  EXPECT_EQ(classification[0].name, "loss");
  EXPECT_EQ(classification[0].value, 2.0);
  EXPECT_EQ(classification[1].name, "accuracy");
  EXPECT_EQ(classification[1].value, 0.8);
  EXPECT_EQ(metrics_of(Loss::mean_squared_error, sums).size(), 1u);
}

TEST(Metrics, ALossIsDividedByItsWeight) {
  LossSums sums = classified(20, 8, 10);
  sums.weight = 40;
  EXPECT_EQ(metrics_of(Loss::softmax_cross_entropy, sums)[0].value, 0.5);
  EXPECT_EQ(metrics_of(Loss::softmax_cross_entropy, sums)[1].value, 0.8);
}

TEST(Metrics, OfNoRowsAreZero) {
  for (const Metric& metric : metrics_of(Loss::softmax_cross_entropy, {})) {
    EXPECT_EQ(metric.value, 0) << metric.name;
  }
}

TEST(LossSumsTest, AddUpEverySum) {
  LossSums sums = classified(1, 2, 3);
  sums.terms[4] = 0.5;
  sums += sums;
  EXPECT_EQ(sums.loss, 2);
  EXPECT_EQ(sums.weight, 6);
  EXPECT_EQ(sums.rows, 6);
  EXPECT_EQ(sums.terms, (std::array<double, LossSums::kMostTerms>{4, 0, 0, 0, 1}));
}

}  // namespace
}  // namespace muster::compute::testing
