#include <cmath>

#include "trainer/compute/graph.h"
#include "trainer/compute/loss.h"
#include "trainer/compute/metrics/evaluator.h"

namespace muster::compute {

namespace {

class NumberMeasures : public Accumulator {
 public:
  NumberMeasures(OutputFunction function, size_t width) : function_(function), outputs_(width) {}

  void add(const EvaluatedRows& rows) override {
    const size_t width = outputs_.size();
    std::vector<float> predictions(width);
    for (size_t row = 0; row < static_cast<size_t>(rows.batch.rows); ++row) {
      const auto outputs = rows.outputs.subspan(row * width, width);
      predictions.assign(outputs.begin(), outputs.end());
      apply_function(function_, predictions);
      count_ += 1;
      for (size_t i = 0; i < width; ++i)
        add(outputs_[i], static_cast<double>(predictions[i]),
            static_cast<double>(rows.batch.targets[row][i]));
    }
  }

  std::vector<Metric> metrics() const override {
    if (count_ == 0) return {};
    double rmse = 0, mae = 0, r2 = 0, spread_outputs = 0;
    for (const Output& output : outputs_) {
      rmse += std::sqrt(output.squares / count_);
      mae += output.distances / count_;
      if (output.spread == 0) continue;
      r2 += 1 - output.squares / output.spread;
      spread_outputs += 1;
    }
    const auto width = static_cast<double>(outputs_.size());
    std::vector<Metric> metrics = {{"rmse", rmse / width}, {"mae", mae / width}};
    if (spread_outputs > 0) metrics.push_back({"r2", r2 / spread_outputs});
    return metrics;
  }

 private:
  struct Output {
    double squares = 0, distances = 0;  // of the errors
    double mean = 0, spread = 0;        // of the targets; spread is the sum of (target - mean)^2
  };

  void add(Output& output, double prediction, double target) const {
    const double error = prediction - target;
    output.squares += error * error;
    output.distances += std::abs(error);
    const double before = target - output.mean;  // Welford's method
    output.mean += before / count_;
    output.spread += before * (target - output.mean);
  }

  const OutputFunction function_;
  std::vector<Output> outputs_;
  double count_ = 0;  // of rows
};

}  // namespace

Evaluator number_measures() {
  return {{{"rmse", Better::lower}, {"mae", Better::lower}, {"r2", Better::higher}},
          [](const Graph& graph) -> std::unique_ptr<Accumulator> {
            return std::make_unique<NumberMeasures>(graph.prediction,
                                                    static_cast<size_t>(graph.outputs()));
          }};
}

}  // namespace muster::compute
