#include "trainer/loop/loss_text.h"

#include <gmock/gmock.h>

#include <limits>

namespace muster::loop {
namespace {

TEST(LossTextTest, MetricsHaveAProblemInTheWordsOfTheirLoss) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const compute::LossKind& loss : compute::all_losses()) {
    const bool is_detector = std::holds_alternative<compute::SsdLoss>(loss);
    EXPECT_EQ(metrics_problem(loss, {}), is_detector
                                             ? "expected objects that are no crowds, found none"
                                             : "expected samples, found none")
        << compute::describe(loss).name;
    EXPECT_EQ(metrics_problem(loss, {{"loss", 0.5}}), "");
    EXPECT_EQ(metrics_problem(loss, {{"loss", 0.5}, {"accuracy", kNan}}),
              "expected finite numbers");
  }
}

}  // namespace
}  // namespace muster::loop
