#include "common/job/metric_name.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(MetricName, IsToldInThreeWays) {
  struct Case {
    const char *data, *metric, *field, *tag, *words;
  };
  for (const Case& one : {
           Case{"validation", "loss", "validationLoss", "validation_loss", "loss"},
           Case{"test", "accuracy", "testAccuracy", "test_accuracy", "accuracy"},
           Case{"validation", "balancedAccuracy", "validationBalancedAccuracy",
                "validation_balanced_accuracy", "balanced accuracy"},
           Case{"epoch", "top5Accuracy", "epochTop5Accuracy", "epoch_top5_accuracy",
                "top 5 accuracy"},
           Case{"test", "averagePrecision50", "testAveragePrecision50", "test_average_precision50",
                "average precision 50"},
           Case{"test", "macroF1", "testMacroF1", "test_macro_f1", "macro f1"},
           Case{"", "r2", "R2", "r2", "r2"},
           Case{"", "loss", "Loss", "loss", "loss"},
           Case{"test", "", "test", "test_", ""},
       }) {
    EXPECT_EQ(metric_field(one.data, one.metric), one.field);
    EXPECT_EQ(metric_tag(one.data, one.metric), one.tag);
    EXPECT_EQ(metric_words(one.metric), one.words);
  }
  EXPECT_EQ(metric_words("validationBalancedAccuracy"), "validation balanced accuracy");
}

}  // namespace
}  // namespace muster
