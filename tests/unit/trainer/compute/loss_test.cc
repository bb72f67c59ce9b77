#include "trainer/compute/loss.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/unit/trainer/compute/sums.h"
#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/graph.h"
#include "trainer/detection/objects.h"

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

TEST(Metrics, OfNothingAreLeftOut) {
  EXPECT_TRUE(metrics_of(SoftmaxCrossEntropy{}, {}).empty());
  LossSums without_objects;
  without_objects.rows = 3;
  EXPECT_TRUE(metrics_of(SsdLoss{}, without_objects).empty());
  EXPECT_EQ(trained_metrics(SsdLoss{}).size(), 3u);
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

// A model of each loss. The detector has one anchor, whose box is its cell, the whole image.
ModelSpec smallest(const LossKind& loss) {
  if (!std::holds_alternative<SsdLoss>(loss))
    return model(1, {dense("y", 2, Activation::linear)}, 2, loss);
  SsdLoss detector = std::get<SsdLoss>(loss);
  detector.classes = 1;
  detector.anchors.num_layers = 1;
  detector.anchors.scales = {1.0f};
  detector.anchors.aspect_ratios = {1.0f};
  detector.anchors.interpolated_scale_aspect_ratio = 0;
  detector.anchors.reduce_boxes_in_lowest_layer = false;
  detector.grids = {"grid"};
  ModelSpec spec = model(1, {layer("grid", Reshape{{1, 1, 1}}), dense("y", 6, Activation::linear)},
                         static_cast<int64_t>(detection::ObjectList::floats(1)), detector);
  spec.input_shape = {1, 1};
  return spec;
}

// The evaluators get one row that the model knows all about: its label is 0, or its object fills
// the image.
TEST(Losses, AreEvaluatedByTheMetricsThatTheySay) {
  const std::vector<int32_t> labels = {0};
  std::vector<float> target(detection::ObjectList::floats(1));
  const detection::Object object{{0, 0, 1, 1}, 0, 1, false, 50 * 50};
  detection::write_objects(50, 50, {&object, 1}, target);
  const std::vector<float> outputs = {0, 0, 0, 0, -9, 9};
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
    for (const auto& accumulator : make_accumulators(build_graph(smallest(loss)))) {
      for (const Metric& metric : accumulator->metrics()) EXPECT_EQ(metric.value, 0);
      accumulator->add({batch, outputs, sums});
      for (const Metric& metric : accumulator->metrics()) {
        found.push_back(metric.name);
        EXPECT_NEAR(metric.value, metric.name == "loss" ? 0.25 : 1, 1e-9) << metric.name;
      }
    }
    EXPECT_EQ(said.front(), "loss");
    EXPECT_EQ(std::set(said.begin(), said.end()).size(), said.size());
    // The object is neither small nor large.
    std::erase_if(said, [](const std::string& name) {
      return name.ends_with("Small") || name.ends_with("Large");
    });
    EXPECT_EQ(found, said);
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
