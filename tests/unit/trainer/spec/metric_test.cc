#include "trainer/spec/metric.h"

#include <gmock/gmock.h>

namespace muster::spec {
namespace {

using compute::Better;
using testing::ElementsAre;
using testing::IsSupersetOf;

TEST(MetricNames, AreThoseOfValidationThatTheLossHas) {
  EXPECT_THAT(metric_names(compute::SoftmaxCrossEntropy{}),
              ElementsAre("validationLoss", "validationAccuracy", "validationBalancedAccuracy"));
  EXPECT_THAT(metric_names(compute::MeanSquaredError{}), ElementsAre("validationLoss"));
  EXPECT_THAT(metric_names(compute::Huber{}), ElementsAre("validationLoss"));
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
}

}  // namespace
}  // namespace muster::spec
