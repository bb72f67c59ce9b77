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

// The kind of a sample's labels. Objects are floats in a target too; see detection::ObjectList.
enum class LabelKind { classes, floats, objects };
// Returns the kind in the words of messages: "objects with boxes".
const char* words_of(LabelKind labels);

// The description of a loss, except for its formula, which the backends implement.
struct LossDescription {
  std::string name;  // in the manifest
  LabelKind labels = LabelKind::classes;
  // Whether the loss computes the softmax of the model's output itself. It then replaces a softmax
  // that ends the layers, and a prediction is that softmax.
  bool takes_softmax = false;
  // The loss's further means, in the order of LossSums::terms: over rows, or by the loss's weight.
  std::vector<MetricDefinition> terms = {};
  bool terms_by_weight = false;
  // The metrics that an evaluation measures besides the loss and its terms.
  std::vector<Evaluator> evaluators = {};
  // Whether only models of the catalogue have it, since it needs settings that the manifest has no
  // fields for.
  bool catalogue_only = false;
};
const LossDescription& describe(const LossKind& loss);

// Returns one loss of each kind, with its default parameters.
const std::vector<LossKind>& all_losses();

// Returns the metrics of a loss over the rows of `sums`, "loss" first: loss / weight, then each
// term / rows, or / weight. A mean over nothing is left out: all if there are no rows, those by
// weight if it is 0, as of a detector whose images have no object to be found.
std::vector<Metric> metrics_of(const LossKind& loss, const LossSums& sums);
// Returns the metrics that metrics_of() gives where there is something to measure.
std::vector<MetricDefinition> trained_metrics(const LossKind& loss);

// Returns the metrics that an evaluation of a model with this loss measures: "loss" first, its
// terms, and the metrics of its evaluators.
std::vector<MetricDefinition> evaluated_metrics(const LossKind& loss);

// Returns the accumulators of an evaluation of a model. Their metrics, one after the other, are
// evaluated_metrics(), without those of which the data have nothing to measure.
std::vector<std::unique_ptr<Accumulator>> make_accumulators(const Graph& graph);

}  // namespace muster::compute
