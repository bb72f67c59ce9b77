#include <cmath>
#include <cstdlib>

#include "trainer/compute/graph.h"
#include "trainer/compute/loss.h"
#include "trainer/compute/metrics/evaluator.h"

namespace muster::compute {

namespace {

// Returns the number of the quantile that is measured.
size_t middle_of(const LossKind& loss) {
  const auto* quantile = std::get_if<Quantile>(&loss);
  if (quantile == nullptr) return 0;
  int64_t middle = 0;
  const auto distance = [&](int64_t i) { return std::abs(quantile->quantiles[i] - 0.5f); };
  for (int64_t i = 1; i < quantile->count; ++i)
    if (distance(i) < distance(middle)) middle = i;
  return static_cast<size_t>(middle);
}

class NumberMeasures : public Accumulator {
 public:
  NumberMeasures(const Graph& graph, Measuring measuring)
      : function_(graph.prediction),
        measuring_(std::move(measuring)),
        width_(static_cast<size_t>(graph.outputs())),
        targets_(width_ / static_cast<size_t>(outputs_for_each(graph.loss))),
        first_(middle_of(graph.loss) * targets_.size()) {}

  void add(const EvaluatedRows& rows) override {
    std::vector<float> predictions(targets_.size());
    for (size_t row = 0; row < static_cast<size_t>(rows.batch.rows); ++row) {
      const auto outputs = rows.outputs.subspan(row * width_ + first_, targets_.size());
      predictions.assign(outputs.begin(), outputs.end());
      apply_function(function_, predictions);
      count_ += 1;
      for (size_t i = 0; i < targets_.size(); ++i)
        add(targets_[i], measuring_.in_unit(i, predictions[i]),
            measuring_.in_unit(i, rows.batch.targets[row][i]));
    }
  }

  std::vector<Metric> metrics() const override {
    if (count_ == 0) return {};
    double rmse = 0, mae = 0, r2 = 0, spread_targets = 0;
    for (const Target& target : targets_) {
      rmse += std::sqrt(target.squares / count_);
      mae += target.distances / count_;
      if (target.spread == 0) continue;
      r2 += 1 - target.squares / target.spread;
      spread_targets += 1;
    }
    const auto count = static_cast<double>(targets_.size());
    std::vector<Metric> metrics = {{"rmse", rmse / count}, {"mae", mae / count}};
    if (spread_targets > 0) metrics.push_back({"r2", r2 / spread_targets});
    return metrics;
  }

 private:
  struct Target {
    double squares = 0, distances = 0;  // of the errors
    double mean = 0, spread = 0;        // of the targets; spread is the sum of (target - mean)^2
  };

  void add(Target& target, double prediction, double number) const {
    const double error = prediction - number;
    target.squares += error * error;
    target.distances += std::abs(error);
    const double before = number - target.mean;  // Welford's method
    target.mean += before / count_;
    target.spread += before * (number - target.mean);
  }

  const OutputFunction function_;
  const Measuring measuring_;
  const size_t width_;  // outputs of a row
  std::vector<Target> targets_;
  const size_t first_;  // the first output that is measured
  double count_ = 0;    // of rows
};

}  // namespace

Evaluator number_measures() {
  return {{{"rmse", Better::lower}, {"mae", Better::lower}, {"r2", Better::higher}},
          [](const Graph& graph, const Measuring& measuring) -> std::unique_ptr<Accumulator> {
            return std::make_unique<NumberMeasures>(graph, measuring);
          }};
}

}  // namespace muster::compute
