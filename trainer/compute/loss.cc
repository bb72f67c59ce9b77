#include "trainer/compute/loss.h"

#include <cmath>

#include "trainer/compute/graph.h"

namespace muster::compute {

namespace {

std::vector<Evaluator> of_numbers() {
  return {number_measures(), ranking_measures()};
}

const LossDescription& description_of(const SoftmaxCrossEntropy&) {
  static const LossDescription description = {
      .name = "softmaxCrossEntropy",
      .labels = LabelKind::classes,
      .function = OutputFunction::softmax,
      .terms = {{"accuracy", Better::higher}},  // the largest output is the label's
      .evaluators = {class_measures()},
  };
  return description;
}

const LossDescription& description_of(const MeanSquaredError&) {
  static const LossDescription description = {
      .name = "meanSquaredError", .labels = LabelKind::floats, .evaluators = of_numbers()};
  return description;
}

const LossDescription& description_of(const Huber&) {
  static const LossDescription description = {
      .name = "huber", .labels = LabelKind::floats, .evaluators = of_numbers()};
  return description;
}

const LossDescription& description_of(const BinaryCrossEntropy&) {
  static const LossDescription description = {
      .name = "binaryCrossEntropy",
      .labels = LabelKind::floats,
      .least_target = 0,
      .most_target = 1,
      .function = OutputFunction::sigmoid,
      .terms = {{"accuracy", Better::higher}},  // the share of decisions that are correct
      .evaluators = {decision_measures(), ranking_measures()},
  };
  return description;
}

const LossDescription& description_of(const Poisson&) {
  static const LossDescription description = {
      .name = "poisson",
      .labels = LabelKind::floats,
      .least_target = 0,
      .function = OutputFunction::exponential,
      .evaluators = of_numbers(),
  };
  return description;
}

const LossDescription& description_of(const Quantile&) {
  static const LossDescription description = {
      .name = "quantile", .labels = LabelKind::floats, .evaluators = of_numbers()};
  return description;
}

const LossDescription& description_of(const SsdLoss&) {
  static const LossDescription description = {
      .name = "ssd",
      .labels = LabelKind::objects,
      .terms = {{"classificationLoss", Better::lower}, {"localizationLoss", Better::lower}},
      .terms_by_weight = true,
      .evaluators = {coco_metrics()},
      .catalogue_only = true,
  };
  return description;
}

// The loss and its terms, which the engine sums.
class LossMetrics : public Accumulator {
 public:
  explicit LossMetrics(const LossKind& loss) : loss_(loss) {}

  void add(const EvaluatedRows& rows) override { sums_ += rows.sums; }
  std::vector<Metric> metrics() const override { return metrics_of(loss_, sums_); }

 private:
  const LossKind loss_;
  LossSums sums_;
};

template <size_t... Index>
std::vector<LossKind> one_of_each(std::index_sequence<Index...>) {
  return {LossKind(std::in_place_index<Index>)...};
}

}  // namespace

const char* words_of(LabelKind labels) {
  return labels == LabelKind::classes  ? "classes"
         : labels == LabelKind::floats ? "numbers as targets"
                                       : "objects with boxes";
}

const LossDescription& describe(const LossKind& loss) {
  return std::visit([](const auto& kind) -> const LossDescription& { return description_of(kind); },
                    loss);
}

int64_t outputs_for_each(const LossKind& loss) {
  const auto* quantile = std::get_if<Quantile>(&loss);
  return quantile == nullptr ? 1 : quantile->count;
}

Activation activation_of(OutputFunction function) {
  return function == OutputFunction::softmax   ? Activation::softmax
         : function == OutputFunction::sigmoid ? Activation::sigmoid
                                               : Activation::linear;
}

void apply_function(OutputFunction function, std::span<float> outputs) {
  if (function == OutputFunction::sigmoid)
    for (float& y : outputs) y = BinaryCrossEntropy::probability(y);
  if (function == OutputFunction::exponential)
    for (float& y : outputs) y = std::exp(y);
}

const std::vector<LossKind>& all_losses() {
  static const auto losses = one_of_each(std::make_index_sequence<std::variant_size_v<LossKind>>());
  return losses;
}

std::vector<Metric> metrics_of(const LossKind& loss, const LossSums& sums) {
  const LossDescription& description = describe(loss);
  std::vector<Metric> metrics;
  const auto add_mean = [&](const std::string& name, double sum, double count) {
    if (count > 0) metrics.push_back({name, sum / count});
  };
  const double count = description.terms_by_weight ? sums.weight : static_cast<double>(sums.rows);
  add_mean("loss", sums.loss, sums.weight);
  for (size_t i = 0; i < description.terms.size(); ++i)
    add_mean(description.terms[i].name, sums.terms[i], count);
  return metrics;
}

std::vector<MetricDefinition> trained_metrics(const LossKind& loss) {
  std::vector<MetricDefinition> metrics{{"loss", Better::lower}};
  const auto& terms = describe(loss).terms;
  metrics.insert(metrics.end(), terms.begin(), terms.end());
  return metrics;
}

std::vector<MetricDefinition> evaluated_metrics(const LossKind& loss) {
  std::vector<MetricDefinition> metrics = trained_metrics(loss);
  for (const Evaluator& evaluator : describe(loss).evaluators)
    metrics.insert(metrics.end(), evaluator.metrics.begin(), evaluator.metrics.end());
  return metrics;
}

std::vector<std::unique_ptr<Accumulator>> make_accumulators(const Graph& graph,
                                                            const Measuring& measuring) {
  std::vector<std::unique_ptr<Accumulator>> accumulators;
  accumulators.push_back(std::make_unique<LossMetrics>(graph.loss));
  for (const Evaluator& evaluator : describe(graph.loss).evaluators)
    accumulators.push_back(evaluator.make(graph, measuring));
  return accumulators;
}

}  // namespace muster::compute
