#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/loss.h"

namespace muster::compute::testing {
namespace {

using Json = nlohmann::json;

const std::filesystem::path kMeasures =
    std::filesystem::path(MUSTER_SOURCE_DIR) / "tests/fixtures/measures";

LossKind measured_loss(const Json& json) {
  for (LossKind loss : all_losses()) {
    if (describe(loss).name != json.at("loss")) continue;
    if (auto* decided = std::get_if<BinaryCrossEntropy>(&loss))
      decided->threshold = json.value("threshold", 0.5f);
    return loss;
  }
  throw std::runtime_error("a fixture has a loss that is not known");
}

// The accumulators of a loss's evaluation but the first, which has the loss itself.
class Measured {
 public:
  Measured(const LossKind& loss, size_t width, const Measuring& measuring = {})
      : width_(width),
        accumulators_(make_accumulators(
            build_graph(model(1, {dense("y", static_cast<int64_t>(width), Activation::linear)},
                              static_cast<int64_t>(width) / outputs_for_each(loss), loss)),
            measuring)) {
    accumulators_.erase(accumulators_.begin());
  }

  // Adds rows; `labels` or `targets` are empty.
  void add(const std::vector<std::vector<float>>& outputs, const std::vector<int32_t>& labels,
           const std::vector<std::vector<float>>& targets,
           const std::vector<int32_t>& groups = {}) {
    std::vector<float> flat;
    std::vector<const float*> rows;
    for (const auto& row : outputs) flat.insert(flat.end(), row.begin(), row.end());
    for (const auto& row : targets) rows.push_back(row.data());
    Batch batch;
    batch.rows = static_cast<int64_t>(outputs.size());
    batch.labels = labels;
    batch.targets = rows;
    batch.groups = groups;
    flat.resize(flat.size() + 3 * width_, 1e9f);  // the buffer of a batch that is not full
    for (const auto& accumulator : accumulators_) accumulator->add({batch, flat, {}});
  }

  // The first accumulator besides that of the loss; others are for rankings.
  Accumulator& only() { return *accumulators_.at(0); }
  std::map<std::string, double> metrics(size_t accumulator = 0) {
    std::map<std::string, double> named;
    for (const Metric& metric : accumulators_.at(accumulator)->metrics())
      named[metric.name] = metric.value;
    return named;
  }

 private:
  size_t width_;
  std::vector<std::unique_ptr<Accumulator>> accumulators_;
};

template <class Row>
std::vector<Row> part(const Json& rows, size_t begin, size_t count) {
  const auto all = rows.get<std::vector<Row>>();
  if (all.empty()) return all;
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(std::min(count, all.size() - begin))};
}

Measured measured_case(const Json& json, size_t batch) {
  const size_t rows = json.at("outputs").size();
  Measured made(measured_loss(json), json["outputs"][0].size(), {.rank_at = json.value("at", 10)});
  for (size_t at = 0; at < rows; at += batch)
    made.add(part<std::vector<float>>(json["outputs"], at, batch),
             part<int32_t>(json.value("labels", Json::array()), at, batch),
             part<std::vector<float>>(json.value("targets", Json::array()), at, batch),
             part<int32_t>(json.value("groups", Json::array()), at, batch));
  return made;
}

TEST(Measures, AreThoseOfScikitLearnForBatchesOfAnySize) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kMeasures)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().filename());
    ++files;
    const Json json = Json::parse(std::ifstream(entry.path()));
    Measured whole = measured_case(json, 1000);
    const size_t accumulator = json.contains("groups") ? 1 : 0;
    const auto metrics = whole.metrics(accumulator);
    EXPECT_EQ(metrics.size(), json.at("expected").size());
    for (const auto& [name, value] : json["expected"].items()) {
      ASSERT_TRUE(metrics.contains(name)) << name;
      EXPECT_NEAR(metrics.at(name), value.get<double>(), 1e-6 * std::abs(value.get<double>()))
          << name;
    }
    if (accumulator > 0) continue;
    for (const ClassMetric& metric : whole.only().class_metrics()) {
      const auto expected = json.at("by_class").at(metric.name).get<std::vector<double>>();
      ASSERT_EQ(metric.values.size(), expected.size()) << metric.name;
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(metric.values[i].value(), expected[i], 1e-6) << metric.name << i;
    }
    EXPECT_EQ(Json(whole.only().confusion()), json.value("confusion", Json::array()));
    Measured apart = measured_case(json, 7);
    EXPECT_EQ(apart.metrics(accumulator), metrics) << "bit by bit";
    EXPECT_EQ(apart.only().confusion(), whole.only().confusion());
  }
  EXPECT_EQ(files, 9u);
}

TEST(Measures, OfDecisionsAreLeftOutWhereTheDataHaveNothingToMeasure) {
  Measured none(BinaryCrossEntropy{}, 1);
  EXPECT_TRUE(none.metrics().empty());
  Measured zeros(BinaryCrossEntropy{}, 1);
  zeros.add({{1}, {-1}}, {}, {{0}, {0}});
  EXPECT_EQ(zeros.metrics().size(), 1u);
  EXPECT_TRUE(zeros.metrics().contains("logLoss"));
  Measured ones(BinaryCrossEntropy{}, 1);
  ones.add({{-1}, {-2}}, {}, {{1}, {1}});
  const std::map<std::string, double> found = ones.metrics();
  EXPECT_FALSE(found.contains("auc"));
  EXPECT_EQ(found.at("precision"), 0) << "no decision for a 1";
  EXPECT_EQ(found.at("f1"), 0);
}

TEST(Measures, OfTheAreaCountEqualScoresHalfAndKeepScoresNearOneApart) {
  Measured equal(BinaryCrossEntropy{}, 1);
  equal.add({{2}, {2}, {2}}, {}, {{0}, {1}, {0}});
  EXPECT_EQ(equal.metrics().at("auc"), 0.5);
  EXPECT_EQ(equal.metrics().at("aucAt200Thresholds"), 0.5);
  // Both probabilities are 1 as floats.
  Measured large(BinaryCrossEntropy{}, 1);
  large.add({{30}, {40}}, {}, {{0}, {1}});
  EXPECT_EQ(large.metrics().at("auc"), 1);
  EXPECT_EQ(large.metrics().at("aucAt200Thresholds"), 0.5);
}

TEST(Measures, OfOutputsThatAreNoNumbersAreNone) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Measured decided(BinaryCrossEntropy{}, 1);
  decided.add({{nan}, {1}, {0}}, {}, {{0}, {1}, {0}});
  EXPECT_TRUE(std::isnan(decided.metrics().at("auc")));
  EXPECT_TRUE(std::isnan(decided.metrics().at("logLoss")));
  Measured predicted(MeanSquaredError{}, 1);
  predicted.add({{nan}, {1}}, {}, {{0}, {1}});
  EXPECT_TRUE(std::isnan(predicted.metrics().at("rmse")));
}

TEST(Measures, OfEqualTargetsHaveNoR2) {
  Measured predicted(Quantile{}, 1);
  predicted.add({{1}, {3}}, {}, {{2}, {2}});
  EXPECT_EQ(predicted.metrics(), (std::map<std::string, double>{{"mae", 1}, {"rmse", 1}}));
}

TEST(Measures, OfNumbersAreInTheUnitOfTheData) {
  const auto undo = [](size_t index, double number) { return index == 0 ? 10 * number : -number; };
  Measured predicted(MeanSquaredError{}, 2, {.undo = undo});
  predicted.add({{1, 0}, {3, 1}}, {}, {{2, 4}, {3, 1}});
  EXPECT_EQ(predicted.metrics().at("mae"), (5.0 + 2.0) / 2);
  EXPECT_EQ(predicted.metrics().at("rmse"), (std::sqrt(50.0) + std::sqrt(8.0)) / 2);
}

TEST(Measures, OfSeveralQuantilesAreThoseOfTheMiddleOne) {
  Measured predicted(Quantile{.quantiles = {0.1f, 0.6f, 0.8f}, .count = 3}, 3);
  predicted.add({{7, 3, 9}, {8, 2, 9}}, {}, {{1}, {2}});
  EXPECT_EQ(predicted.metrics().at("mae"), 1);
}

TEST(Rankings, LeaveOutGroupsWithoutARelevantRow) {
  Measured none(BinaryCrossEntropy{}, 1);
  none.add({{1}, {2}}, {}, {{0}, {0}}, {1, 1});
  EXPECT_TRUE(none.metrics(1).empty());
  none.add({{1}, {2}}, {}, {{1}, {1}}, {2, 2});
  EXPECT_EQ(none.metrics(1), (std::map<std::string, double>{
                                 {"ndcg", 1}, {"meanAveragePrecision", 1}, {"hitRate", 1}}));
  none.add({{std::numeric_limits<float>::quiet_NaN()}}, {}, {{0}}, {1});
  EXPECT_TRUE(std::isnan(none.metrics(1).at("ndcg")));
  Measured without(BinaryCrossEntropy{}, 1);
  without.add({{1}}, {}, {{1}});
  EXPECT_TRUE(without.metrics(1).empty()) << "there are no groups";
}

TEST(Measures, OfVeryManyClassesAreOnlyThoseOverAllOfThem) {
  const size_t classes = kMostMeasuredClasses + 1;
  Measured chosen(SoftmaxCrossEntropy{}, classes);
  chosen.add({std::vector<float>(classes, 1.0f)}, {0}, {});
  EXPECT_EQ(chosen.metrics(),
            (std::map<std::string, double>{{"balancedAccuracy", 1}, {"macroF1", 1}}));
  EXPECT_TRUE(chosen.only().class_metrics().empty());
  EXPECT_TRUE(chosen.only().confusion().empty());
}

}  // namespace
}  // namespace muster::compute::testing
