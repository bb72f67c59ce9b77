#include <cmath>

#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/decisions.h"
#include "trainer/compute/metrics/evaluator.h"
#include "trainer/compute/metrics/roc_curve.h"

namespace muster::compute {

namespace {

class DecisionMeasures : public Accumulator {
 public:
  DecisionMeasures(const BinaryCrossEntropy& loss, size_t width) : loss_(loss), outputs_(width) {}

  void add(const EvaluatedRows& rows) override {
    for (size_t row = 0; row < static_cast<size_t>(rows.batch.rows); ++row)
      for (size_t i = 0; i < outputs_.size(); ++i)
        add(outputs_[i], rows.outputs[row * outputs_.size() + i], rows.batch.targets[row][i]);
  }

  std::vector<Metric> metrics() const override {
    if (count_ == 0) return {};
    std::vector<Metric> metrics;
    const auto add = [&](const char* name, std::optional<double> value) {
      if (value) metrics.push_back({name, *value});
    };
    double exact = 0, by_thresholds = 0, areas = 0;
    for (const Output& output : outputs_) {
      const std::optional<double> area = output.curve.area();
      if (!area) continue;
      exact += *area;
      by_thresholds += output.by_thresholds.area().value_or(0);
      areas += 1;
    }
    if (areas > 0) {
      add("auc", exact / areas);
      add("aucAt200Thresholds", by_thresholds / areas);
    }
    add("logLoss", log_loss_ / static_cast<double>(count_));
    const Decisions all = decisions();
    add("precision", all.precision());
    add("recall", all.recall());
    add("f1", all.f1());
    return metrics;
  }

  std::vector<ClassMetric> class_metrics() const override {
    if (outputs_.size() == 1 || outputs_.size() > kMostMeasuredClasses) return {};
    ClassMetric auc{"aucByClass", {}}, precision{"precisionByClass", {}},
        recall{"recallByClass", {}}, f1{"f1ByClass", {}};
    for (const Output& output : outputs_) {
      auc.values.push_back(output.curve.area());
      precision.values.push_back(output.decisions.precision());
      recall.values.push_back(output.decisions.recall());
      f1.values.push_back(output.decisions.f1());
    }
    return {auc, precision, recall, f1};
  }

  std::vector<std::vector<int64_t>> confusion() const override {
    const Decisions all = decisions();
    return {{count_ - all.belong - all.taken + all.both, all.taken - all.both},
            {all.belong - all.both, all.both}};
  }

 private:
  struct Output {
    RocCurve curve;
    ThresholdCurve by_thresholds;
    Decisions decisions;
  };

  void add(Output& output, float y, float target) {
    const bool positive = BinaryCrossEntropy::is_positive(target);
    output.curve.add(y, positive);
    output.by_thresholds.add(BinaryCrossEntropy::probability(y), positive);
    output.decisions.add(positive, loss_.decides(y));
    const double t = static_cast<double>(target), x = static_cast<double>(y);
    log_loss_ +=
        (1 - t) * std::fmax(x, 0) + t * std::fmax(-x, 0) + std::log1p(std::exp(-std::abs(x)));
    ++count_;
  }

  // The decisions of all outputs.
  Decisions decisions() const {
    Decisions all;
    for (const Output& output : outputs_) {
      all.belong += output.decisions.belong;
      all.taken += output.decisions.taken;
      all.both += output.decisions.both;
    }
    return all;
  }

  const BinaryCrossEntropy loss_;
  std::vector<Output> outputs_;
  double log_loss_ = 0;
  int64_t count_ = 0;  // of decisions
};

}  // namespace

Evaluator decision_measures() {
  return {{{"auc", Better::higher},
           {"aucAt200Thresholds", Better::higher},
           {"logLoss", Better::lower},
           {"precision", Better::higher},
           {"recall", Better::higher},
           {"f1", Better::higher}},
          [](const Graph& graph, const Measuring&) -> std::unique_ptr<Accumulator> {
            return std::make_unique<DecisionMeasures>(std::get<BinaryCrossEntropy>(graph.loss),
                                                      static_cast<size_t>(graph.outputs()));
          }};
}

}  // namespace muster::compute
