#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/compute/loss_sums.h"
#include "trainer/compute/metrics/evaluator.h"
#include "trainer/compute/metrics/metric.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

enum class LabelKind { classes, floats };  // of a sample

// All that is said of a loss apart from its formula, which is the backend's.
struct LossDescription {
  std::string name;  // in the manifest
  LabelKind labels = LabelKind::classes;
  // The loss takes the softmax of the model's output itself: a softmax that ends the layers is left
  // to it, and a prediction is that softmax.
  bool takes_softmax = false;
  // Means over rows: names of LossSums::terms.
  std::vector<MetricDefinition> terms = {};
  // What an evaluation measures besides the loss and its terms.
  std::vector<Evaluator> evaluators = {};
};
const LossDescription& describe(const LossKind& loss);

// One of each kind, with the parameters that it has by default.
const std::vector<LossKind>& all_losses();

// The metrics of a loss over the rows of `sums`, "loss" first: loss / weight, then each term /
// rows. All are 0 where there are no rows.
std::vector<Metric> metrics_of(const LossKind& loss, const LossSums& sums);

// What an evaluation of a model with this loss measures: "loss" first, its terms, and what its
// evaluators give.
std::vector<MetricDefinition> evaluated_metrics(const LossKind& loss);

// The accumulators of an evaluation, whose metrics, one after the other, are evaluated_metrics().
// `width`: outputs of a row.
std::vector<std::unique_ptr<Accumulator>> make_accumulators(const LossKind& loss, int64_t width);

}  // namespace muster::compute
