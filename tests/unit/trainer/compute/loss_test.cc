#include "trainer/compute/loss.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/trainer/compute/sums.h"
#include "tests/unit/trainer/compute/support.h"

namespace muster::compute::testing {
namespace {

TEST(Metrics, AreTheLossAndWhatItsKindSays) {
  const LossSums sums = classified(20, 8, 10);
  const auto classification = metrics_of(SoftmaxCrossEntropy{}, sums);
  ASSERT_EQ(classification.size(), 2u);
  EXPECT_EQ(classification[0].name, "loss");
  EXPECT_EQ(classification[0].value, 2.0);
  EXPECT_EQ(classification[1].name, "accuracy");
  EXPECT_EQ(classification[1].value, 0.8);
  EXPECT_EQ(metrics_of(MeanSquaredError{}, sums).size(), 1u);
}

TEST(Metrics, ALossIsDividedByItsWeight) {
  LossSums sums = classified(20, 8, 10);
  sums.weight = 40;
  EXPECT_EQ(metrics_of(SoftmaxCrossEntropy{}, sums)[0].value, 0.5);
  EXPECT_EQ(metrics_of(SoftmaxCrossEntropy{}, sums)[1].value, 0.8);
}

TEST(Metrics, OfNoRowsAreZero) {
  for (const Metric& metric : metrics_of(SoftmaxCrossEntropy{}, {})) {
    EXPECT_EQ(metric.value, 0) << metric.name;
  }
}

TEST(Losses, HaveNamesOfTheirOwnAndRoomForTheirTerms) {
  std::set<std::string> names;
  for (const LossKind& loss : all_losses()) {
    const LossDescription& description = describe(loss);
    EXPECT_TRUE(names.insert(description.name).second) << description.name;
    EXPECT_LE(description.terms.size(), LossSums::kMostTerms);
  }
  EXPECT_EQ(names,
            (std::set<std::string>{"huber", "meanSquaredError", "softmaxCrossEntropy", "ssd"}));
}

// The evaluators get one row of label 0 with equal outputs.
TEST(Losses, AreEvaluatedByTheMetricsThatTheySay) {
  const std::vector<int32_t> labels = {0};
  const std::vector<float> target = {0}, outputs = {0, 0};
  const std::vector<const float*> targets = {target.data()};
  Batch batch;
  batch.rows = 1;
  batch.labels = labels;
  batch.targets = targets;
  LossSums sums = classified(0.25, 1, 1);
  sums.terms[1] = 1;
  for (const LossKind& loss : all_losses()) {
    SCOPED_TRACE(describe(loss).name);
    std::vector<std::string> said, found;
    for (const MetricDefinition& metric : evaluated_metrics(loss)) {
      said.push_back(metric.name);
      const bool lower = metric.name.ends_with("oss");
      EXPECT_EQ(metric.better, lower ? Better::lower : Better::higher) << metric.name;
    }
    for (const auto& accumulator : make_accumulators(loss, 2)) {
      for (const Metric& metric : accumulator->metrics()) EXPECT_EQ(metric.value, 0);
      accumulator->add({batch, outputs, sums});
      for (const Metric& metric : accumulator->metrics()) {
        found.push_back(metric.name);
        EXPECT_EQ(metric.value, metric.name == "loss" ? 0.25 : 1) << metric.name;
      }
    }
    EXPECT_EQ(found, said);
    EXPECT_EQ(said.front(), "loss");
    EXPECT_EQ(std::set(said.begin(), said.end()).size(), said.size());
  }
}

// The errors are 0.5, within delta, and 3 and -3, beyond it: their gradient is no larger.
TEST(HuberLoss, GrowsEvenlyBeyondDelta) {
  const auto made =
      engine(Backend::cpu, model(1, {dense("y", 3, Activation::linear)}, 3, Huber{2}), 1);
  put(made->parameters(), made->layout().find("y/bias").offset, {1.5f, 4.0f, -2.0f});
  const float feature = 0;
  const std::vector<float> target = {1, 1, 1};
  const void* features = &feature;
  const float* targets = target.data();
  Batch batch;
  batch.rows = 1;
  batch.features = {&features, 1};
  batch.targets = {&targets, 1};
  const LossSums sums = made->compute_gradients(batch);
  EXPECT_FLOAT_EQ(static_cast<float>(sums.loss), (0.125f + 4 + 4) / 3);
  EXPECT_EQ(sums.weight, 1);
  const size_t bias = made->layout().find("y/bias").offset;
  const std::vector<float> gradients = values(made->gradients());
  EXPECT_FLOAT_EQ(gradients[bias], 0.5f / 3);
  EXPECT_FLOAT_EQ(gradients[bias + 1], 2.0f / 3);
  EXPECT_FLOAT_EQ(gradients[bias + 2], -2.0f / 3);
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
