#include "trainer/spec/metric.h"

#include <gmock/gmock.h>

namespace muster::spec {
namespace {

using compute::Better;
using testing::ElementsAre;
using testing::IsSupersetOf;

TEST(MetricNames, AreThoseOfValidationThatTheLossHas) {
  EXPECT_THAT(metric_names(compute::SoftmaxCrossEntropy{}),
              ElementsAre("validationLoss", "validationAccuracy", "validationBalancedAccuracy",
                          "validationMacroF1", "validationAuc"));
  EXPECT_THAT(metric_names(compute::BinaryCrossEntropy{}),
              ElementsAre("validationLoss", "validationAccuracy", "validationAuc",
                          "validationAucAt200Thresholds", "validationLogLoss",
                          "validationPrecision", "validationRecall", "validationF1",
                          "validationNdcg", "validationMeanAveragePrecision", "validationHitRate"));
  for (const compute::LossKind& loss :
       {compute::LossKind{compute::MeanSquaredError{}}, compute::LossKind{compute::Huber{}},
        compute::LossKind{compute::Poisson{}}, compute::LossKind{compute::Quantile{}}})
    EXPECT_THAT(
        metric_names(loss),
        ElementsAre("validationLoss", "validationRmse", "validationMae", "validationR2",
                    "validationNdcg", "validationMeanAveragePrecision", "validationHitRate"));
  EXPECT_THAT(all_metric_names(),
              IsSupersetOf({"validationLoss", "validationAccuracy", "validationBalancedAccuracy",
                            "validationLocalizationLoss", "validationAveragePrecision50"}));
}

TEST(MetricNames, LeadToTheMetricAndWhichValueIsBetter) {
  const compute::LossKind loss = compute::SoftmaxCrossEntropy{};
  EXPECT_EQ(metric_of(loss, "validationLoss").name, "loss");
  EXPECT_EQ(metric_of(loss, "validationLoss").better, Better::lower);
  EXPECT_EQ(metric_of(loss, "validationAccuracy").better, Better::higher);
  EXPECT_EQ(metric_of(loss, "validationBalancedAccuracy").name, "balancedAccuracy");
  EXPECT_EQ(metric_of(loss, "validationBalancedAccuracy").better, Better::higher);
  EXPECT_EQ(metric_of(compute::Huber{}, "validationRmse").better, Better::lower);
  EXPECT_EQ(metric_of(compute::Huber{}, "validationR2").better, Better::higher);
  EXPECT_EQ(metric_of(compute::BinaryCrossEntropy{}, "validationLogLoss").better, Better::lower);
}

}  // namespace
}  // namespace muster::spec
