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
  EXPECT_EQ(names, (std::set<std::string>{"binaryCrossEntropy", "huber", "meanSquaredError",
                                          "poisson", "quantile", "softmaxCrossEntropy", "ssd"}));
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

// The evaluators get rows that the model knows all about: one of each class, with targets that say
// the same; or one object that fills the image.
TEST(Losses, AreEvaluatedByTheMetricsThatTheySay) {
  const std::vector<int32_t> labels = {0, 1};
  std::vector<float> target(detection::ObjectList::floats(1));
  const detection::Object object{{0, 0, 1, 1}, 0, 1, false, 50 * 50};
  detection::write_objects(50, 50, {&object, 1}, target);
  const std::vector<float> of_objects = {0, 0, 0, 0, -9, 9}, of_rows = {30, -30, -30, 30};
  const std::vector<const float*> objects = {target.data()};
  const std::vector<float> numbers = {1, 0, 0, 1};
  const std::vector<const float*> rows = {&numbers[0], &numbers[2]};
  const std::vector<int32_t> groups = {0, 0};
  LossSums sums = classified(0.25, 1, 1);
  sums.terms[1] = 1;
  for (const LossKind& loss : all_losses()) {
    SCOPED_TRACE(describe(loss).name);
    std::vector<std::string> said, found;
    for (const MetricDefinition& metric : evaluated_metrics(loss)) {
      said.push_back(metric.name);
      const bool lower =
          metric.name.ends_with("oss") || metric.name == "rmse" || metric.name == "mae";
      EXPECT_EQ(metric.better, lower ? Better::lower : Better::higher) << metric.name;
    }
    const bool has_objects = describe(loss).labels == LabelKind::objects;
    Batch batch;
    batch.rows = has_objects ? 1 : 2;
    batch.labels = labels;
    batch.targets = has_objects ? objects : rows;
    if (describe(loss).labels == LabelKind::floats) batch.groups = groups;
    const bool has_numbers = describe(loss).function != OutputFunction::sigmoid &&
                             describe(loss).labels == LabelKind::floats;
    for (const auto& accumulator : make_accumulators(build_graph(smallest(loss)))) {
      for (const Metric& metric : accumulator->metrics()) EXPECT_EQ(metric.value, 0);
      accumulator->add({batch, has_objects ? of_objects : of_rows, sums});
      for (const Metric& metric : accumulator->metrics()) {
        found.push_back(metric.name);
        if (has_numbers) continue;  // their values are tried by measures_test.cc
        const double expected = metric.name == "loss" ? 0.25 : metric.name == "logLoss" ? 0 : 1;
        EXPECT_NEAR(metric.value, expected, 1e-9) << metric.name;
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

// Returns what a loss has for one row whose outputs are its biases.
std::pair<LossSums, std::vector<float>> of_one_row(Engine& made, const std::vector<float>& outputs,
                                                   const std::vector<float>& target) {
  const size_t bias = made.layout().find("y/bias").offset;
  put(made.parameters(), bias, outputs);
  const float feature = 0;
  const void* features = &feature;
  const float* targets = target.data();
  Batch batch;
  batch.rows = 1;
  batch.features = {&features, 1};
  batch.targets = {&targets, 1};
  const LossSums sums = made.compute_gradients(batch);
  const std::vector<float> all = values(made.gradients());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(bias);
  return {sums, {begin, begin + static_cast<std::ptrdiff_t>(outputs.size())}};
}

struct ByHand {
  LossKind loss;
  std::vector<float> outputs, target, losses, slopes;
  double term;
};

// The outputs of the cross entropy are so large that a plain formula would give infinity, or 0 for
// the slope.
TEST(TargetLosses, AreWhatTheirFormulasSayOnEveryBackend) {
  const std::vector<ByHand> cases = {
      {BinaryCrossEntropy{2.0f, 0.5f},
       {0, 0, 100, -100, -20},
       {1, 0, 0, 1, 0},
       {2 * 0.69314718f, 0.69314718f, 100, 200, 2.0611537e-9f},
       {-1, 0.5f, 1, -2, 2.0611537e-9f},
       2.0 / 5},
      {BinaryCrossEntropy{1.0f, 0.2f},
       {-1, -2, 0},
       {1, 0, 0},
       {1.3132617f, 0.12692801f, 0.69314718f},
       {-0.7310586f, 0.11920292f, 0.5f},
       2.0 / 3},
      {Poisson{}, {0, 1}, {3, 0}, {1, 2.7182818f}, {-2, 2.7182818f}, 0},
      {Quantile{{0.75f}}, {0, 3, 1}, {2, 1, 1}, {1.5f, 0.5f, 0}, {-0.75f, 0.25f, 0}, 0},
  };
  for (const Backend backend : backends()) {
    if (is_missing(backend)) continue;
    for (const ByHand& one : cases) {
      SCOPED_TRACE(describe(one.loss).name + " on " + name_of(backend));
      const auto width = static_cast<int64_t>(one.outputs.size());
      const auto made =
          engine(backend, model(1, {dense("y", width, Activation::linear)}, width, one.loss), 1);
      const auto [sums, slopes] = of_one_row(*made, one.outputs, one.target);
      float total = 0;
      for (const float loss : one.losses) total += loss;
      EXPECT_NEAR(sums.loss, total / float(width), 1e-6 * total);
      EXPECT_NEAR(sums.terms[0], one.term, 1e-6);
      for (size_t i = 0; i < slopes.size(); ++i)
        EXPECT_NEAR(slopes[i], one.slopes[i] / float(width), 1e-6f * std::abs(one.slopes[i])) << i;
    }
  }
}

// Two outputs for each of two quantiles.
TEST(TargetLosses, HaveAnOutputForEachQuantileOfEachTarget) {
  const Quantile loss{.quantiles = {0.25f, 0.75f}, .count = 2};
  for (const Backend backend : backends()) {
    if (is_missing(backend)) continue;
    const auto made = engine(backend, model(1, {dense("y", 4, Activation::linear)}, 2, loss), 1);
    const auto [sums, slopes] = of_one_row(*made, {0, 5, 0, 5}, {2, 1});
    EXPECT_NEAR(sums.loss, (0.25 * 2 + 0.75 * 4 + 0.75 * 2 + 0.25 * 4) / 4, 1e-6);
    EXPECT_THAT(slopes, ::testing::Pointwise(::testing::FloatEq(),
                                             {-0.25f / 4, 0.75f / 4, -0.75f / 4, 0.25f / 4}));
  }
}

// The losses of all kinds but that of objects.
TEST(WeightsOfRows, MultiplyTheLossAndTheGradientOfEachRow) {
  for (const LossKind& loss : all_losses())
    for (const Backend backend : backends()) {
      if (is_missing(backend) || describe(loss).labels == LabelKind::objects) continue;
      SCOPED_TRACE(describe(loss).name + " on " + name_of(backend));
      const auto made = engine(backend, model(1, {dense("y", 3, Activation::linear)}, 3, loss), 2);
      const std::vector<float> features{1, -2}, first{0, 1, 1}, second{1, 0, 1};
      const void* pointers[] = {&features[0], &features[1]};
      const float* targets[] = {first.data(), second.data()};
      const int32_t labels[] = {2, 0};
      const auto sums_of = [&](std::vector<size_t> rows, std::vector<float> weights) {
        Batch batch;
        batch.rows = static_cast<int64_t>(rows.size());
        batch.features = std::span(pointers).subspan(rows[0], rows.size());
        batch.targets = std::span(targets).subspan(rows[0], rows.size());
        batch.labels = std::span(labels).subspan(rows[0], rows.size());
        batch.weights = weights;
        const LossSums sums = made->compute_gradients(batch);
        return std::pair(sums, values(made->gradients()));
      };
      const auto [one, of_one] = sums_of({0}, {});
      const auto [other, of_other] = sums_of({1}, {});
      const auto [weighted, gradients] = sums_of({0, 1}, {2, 0.5f});
      EXPECT_NEAR(weighted.loss, 2 * one.loss + other.loss / 2, 1e-6 * weighted.loss);
      EXPECT_EQ(weighted.weight, 2) << "it is divided by the number of rows";
      EXPECT_EQ(weighted.terms[0], one.terms[0] + other.terms[0]);
      for (size_t i = 0; i < gradients.size(); ++i)
        EXPECT_NEAR(gradients[i], 2 * of_one[i] + of_other[i] / 2, 1e-6) << i;
      const auto [alone, of_alone] = sums_of({0, 1}, {0, 1});
      EXPECT_EQ(alone.loss, other.loss);
      EXPECT_EQ(of_alone, of_other) << "a row of weight 0 leaves the bits as they are";
      EXPECT_EQ(sums_of({0, 1}, {1, 1}), sums_of({0, 1}, {}));
    }
}

TEST(TargetLosses, MakePredictionsByTheirFunction) {
  for (const Backend backend : backends()) {
    if (is_missing(backend)) continue;
    for (const auto& [loss, expected] :
         {std::pair<LossKind, std::vector<float>>{BinaryCrossEntropy{}, {0.5f, 0.26894143f}},
          {Poisson{}, {1, 0.36787945f}},
          {Quantile{}, {0, -1}}}) {
      const auto made = engine(backend, model(1, {dense("y", 2, Activation::linear)}, 2, loss), 1);
      of_one_row(*made, {0, -1}, {0, 1});
      const float feature = 0;
      const void* features = &feature;
      Batch batch;
      batch.rows = 1;
      batch.features = {&features, 1};
      std::vector<float> outputs(2);
      made->predict(batch, outputs);
      EXPECT_FLOAT_EQ(outputs[0], expected[0]) << describe(loss).name;
      EXPECT_FLOAT_EQ(outputs[1], expected[1]) << describe(loss).name;
    }
  }
}

// A sigmoid at the end is the loss's own.
TEST(TargetLosses, ComputeASigmoidOnce) {
  const auto with = [](Activation activation, LossKind loss) {
    return build_graph(model(3, {dense("y", 2, activation)}, 2, loss));
  };
  const Graph fused = with(Activation::sigmoid, BinaryCrossEntropy{});
  EXPECT_EQ(std::get<Dense>(fused.nodes.back().kind).activation, Activation::linear);
  EXPECT_EQ(fused.prediction, OutputFunction::sigmoid);
  const Graph kept = with(Activation::sigmoid, MeanSquaredError{});
  EXPECT_EQ(std::get<Dense>(kept.nodes.back().kind).activation, Activation::sigmoid);
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
