#include <algorithm>

#include "trainer/compute/graph.h"
#include "trainer/compute/metrics/evaluator.h"

namespace muster::compute {

namespace {

class ClassRecall : public Accumulator {
 public:
  explicit ClassRecall(int64_t width) : classes_(static_cast<size_t>(width)) {}

  void add(const EvaluatedRows& rows) override {
    for (size_t row = 0; row < static_cast<size_t>(rows.batch.rows); ++row) {
      const auto outputs = rows.outputs.subspan(row * classes_.size(), classes_.size());
      const auto label = static_cast<size_t>(rows.batch.labels[row]);
      const auto largest = std::ranges::max_element(outputs) - outputs.begin();
      ++classes_[label].rows;
      if (static_cast<size_t>(largest) == label) ++classes_[label].found;
    }
  }

  std::vector<Metric> metrics() const override {
    double recalls = 0;
    int64_t seen = 0;
    for (const Count& one : classes_) {
      if (one.rows == 0) continue;
      recalls += static_cast<double>(one.found) / static_cast<double>(one.rows);
      ++seen;
    }
    if (seen == 0) return {};
    return {{"balancedAccuracy", recalls / static_cast<double>(seen)}};
  }

 private:
  struct Count {
    int64_t rows = 0;
    int64_t found = 0;  // rows that the model classifies correctly
  };
  std::vector<Count> classes_;
};

}  // namespace

Evaluator class_recall() {
  return {{{"balancedAccuracy", Better::higher}},
          [](const Graph& graph) -> std::unique_ptr<Accumulator> {
            return std::make_unique<ClassRecall>(graph.outputs());
          }};
}

}  // namespace muster::compute
