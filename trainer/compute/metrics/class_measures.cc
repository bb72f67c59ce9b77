#include <algorithm>
#include <cmath>

#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/decisions.h"
#include "trainer/compute/metrics/evaluator.h"
#include "trainer/compute/metrics/roc_curve.h"

namespace muster::compute {

namespace {

class ClassMeasures : public Accumulator {
 public:
  explicit ClassMeasures(size_t width)
      : classes_(width),
        curves_(width <= kMostMeasuredClasses ? width : 0),
        confusion_(curves_.size(), std::vector<int64_t>(curves_.size())) {}

  void add(const EvaluatedRows& rows) override {
    for (size_t row = 0; row < static_cast<size_t>(rows.batch.rows); ++row) {
      const auto outputs = rows.outputs.subspan(row * classes_.size(), classes_.size());
      const auto label = static_cast<size_t>(rows.batch.labels[row]);
      const auto largest = static_cast<size_t>(std::ranges::max_element(outputs) - outputs.begin());
      ++classes_[label].belong;
      ++classes_[largest].taken;
      if (largest == label) ++classes_[label].both;
      if (curves_.empty()) continue;
      ++confusion_[label][largest];
      double sum = 0;
      for (const float y : outputs) sum += std::exp(static_cast<double>(y - outputs[largest]));
      // The logarithm of the probability tells those near 1 apart, too.
      const double log_sum = std::log(sum) + static_cast<double>(outputs[largest]);
      for (size_t i = 0; i < curves_.size(); ++i)
        curves_[i].add(static_cast<float>(static_cast<double>(outputs[i]) - log_sum), i == label);
    }
  }

  std::vector<Metric> metrics() const override {
    Mean recall, f1, auc;
    for (const Decisions& one : classes_) {
      recall.add(one.recall());
      if (one.belong + one.taken > 0) f1.add(one.f1().value_or(0));
    }
    for (const RocCurve& curve : curves_) auc.add(curve.area());
    std::vector<Metric> metrics;
    for (const auto& [name, mean] :
         {std::pair{"balancedAccuracy", recall}, {"macroF1", f1}, {"auc", auc}})
      if (mean.count > 0) metrics.push_back({name, mean.sum / mean.count});
    return metrics;
  }

  std::vector<ClassMetric> class_metrics() const override {
    if (curves_.empty()) return {};
    ClassMetric precision{"precisionByClass", {}}, recall{"recallByClass", {}}, f1{"f1ByClass", {}};
    for (const Decisions& one : classes_) {
      precision.values.push_back(one.precision());
      recall.values.push_back(one.recall());
      f1.values.push_back(one.f1());
    }
    return {precision, recall, f1};
  }

  std::vector<std::vector<int64_t>> confusion() const override { return confusion_; }

 private:
  struct Mean {
    double sum = 0, count = 0;
    void add(std::optional<double> value) {
      if (value) sum += *value, count += 1;
    }
  };

  std::vector<Decisions> classes_;
  std::vector<RocCurve> curves_;  // of each class; none with too many classes
  std::vector<std::vector<int64_t>> confusion_;
};

}  // namespace

Evaluator class_measures() {
  return {
      {{"balancedAccuracy", Better::higher}, {"macroF1", Better::higher}, {"auc", Better::higher}},
      [](const Graph& graph, const Measuring&) -> std::unique_ptr<Accumulator> {
        return std::make_unique<ClassMeasures>(static_cast<size_t>(graph.outputs()));
      }};
}

}  // namespace muster::compute
