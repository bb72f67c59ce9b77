#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/trainer/compute/support.h"
#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/evaluator.h"

namespace muster::compute::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Rows of three classes: the label, and the outputs.
struct Row {
  int32_t label;
  std::vector<float> outputs;
};

// Returns the metric of the rows, added in batches of `batch` rows.
double balanced_accuracy(const std::vector<Row>& rows, size_t batch) {
  const auto accumulator =
      class_measures().make(build_graph(model(1, {dense("y", 3, Activation::linear)}, 3)), {});
  for (size_t begin = 0; begin < rows.size(); begin += batch) {
    std::vector<int32_t> labels;
    std::vector<float> outputs;
    for (size_t i = begin; i < std::min(begin + batch, rows.size()); ++i) {
      labels.push_back(rows[i].label);
      outputs.insert(outputs.end(), rows[i].outputs.begin(), rows[i].outputs.end());
    }
    Batch fed;
    fed.rows = static_cast<int64_t>(labels.size());
    fed.labels = labels;
    outputs.resize(outputs.size() + 30, 1e9f);  // the buffer of a batch that is not full
    accumulator->add({fed, outputs, {}});
  }
  const auto metrics = accumulator->metrics();
  EXPECT_EQ(metrics.empty(), rows.empty());
  return metrics.empty() ? 0 : value_of(metrics, "balancedAccuracy").value();
}

TEST(BalancedAccuracy, IsTheMeanOverTheClassesThatThereAre) {
  const Row zero{0, {3, 1, 2}}, one{1, {-3, -1, -2}}, one_for_zero{1, {5, 1, 2}},
      two_for_zero{2, {1, 0, 0}}, tie{0, {1, 1, 0}}, late_tie{1, {1, 1, 0}};
  struct Case {
    const char* what;
    std::vector<Row> rows;
    double expected;
  };
  const std::vector<Case> cases = {
      {"nothing", {}, 0},
      {"one class", {zero, zero}, 1},
      {"as many of each", {zero, one, one_for_zero, zero}, 0.75},
      // The accuracy is 0.8: it does not show that one of the classes is never found.
      {"most are of one class", {zero, zero, zero, zero, two_for_zero}, 0.5},
      {"three classes",
       {zero, one, one_for_zero, one_for_zero, one_for_zero, two_for_zero},
       (1 + 0.25 + 0) / 3},
      {"the first of the largest counts", {tie, late_tie}, 0.5},
      {"the first stands where nothing is larger", {{0, {kNan, 1, 2}}, {1, {0, kNan, 0}}}, 0.5},
  };
  for (const Case& one_case : cases)
    for (const size_t batch : {1, 2, 100})
      EXPECT_EQ(balanced_accuracy(one_case.rows, batch), one_case.expected)
          << one_case.what << ", in batches of " << batch;
}

}  // namespace
}  // namespace muster::compute::testing
