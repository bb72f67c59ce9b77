#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trainer/compute/loss_sums.h"
#include "trainer/compute/metrics/evaluator.h"
#include "trainer/compute/metrics/metric.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

// The kind of a sample's labels. Objects are also given as floats in a target; see
// detection::ObjectList.
enum class LabelKind { classes, floats, objects };
// Returns the kind as messages name it, for example "objects with boxes".
const char* words_of(LabelKind labels);

// The description of a loss, except for its formula, which the backends implement.
struct LossDescription {
  std::string name;  // the name in the manifest
  LabelKind labels = LabelKind::classes;
  // The smallest and the largest number that a target may have, if the labels are floats.
  float least_target = std::numeric_limits<float>::lowest();
  float most_target = std::numeric_limits<float>::max();
  bool has_target_bounds() const { return least_target != std::numeric_limits<float>::lowest(); }
  // The function of the model's output that the loss computes itself. If an activation at the end
  // of the layers is this function, it is left out. A prediction is this function of the output.
  OutputFunction function = OutputFunction::none;
  // The means that the loss reports besides itself, in the order of LossSums::terms. Each is a mean
  // over rows or over the loss's weight.
  std::vector<MetricDefinition> terms = {};
  bool terms_by_weight = false;
  // The metrics that an evaluation measures besides the loss and its terms.
  std::vector<Evaluator> evaluators = {};
  // Whether only models of the catalogue can have this loss, because the manifest has no fields for
  // its settings.
  bool catalogue_only = false;
};
const LossDescription& describe(const LossKind& loss);
// Returns the number of outputs that a model with this loss has for each class or number of a
// target: that of the quantiles, else 1.
int64_t outputs_for_each(const LossKind& loss);

// Returns the activation that is the function of the loss; linear: no activation is.
Activation activation_of(OutputFunction function);
// Turns outputs into predictions, in place, by a function that works element by element.
void apply_function(OutputFunction function, std::span<float> outputs);

// Returns one loss of each kind, with its default parameters.
const std::vector<LossKind>& all_losses();

// Returns the metrics of a loss over the rows of `sums`, "loss" first: loss / weight, then each
// term / rows, or / weight. A mean over nothing is left out: all means if there are no rows, and
// the means by weight if the weight is 0 (for example a detector with images that have no objects).
std::vector<Metric> metrics_of(const LossKind& loss, const LossSums& sums);
// Returns the metrics that metrics_of() gives if no mean is left out.
std::vector<MetricDefinition> trained_metrics(const LossKind& loss);

// Returns the metrics that an evaluation of a model with this loss measures: "loss" first, its
// terms, and the metrics of its evaluators.
std::vector<MetricDefinition> evaluated_metrics(const LossKind& loss);

// Returns the accumulators of an evaluation of a model. Their metrics, one after the other, are
// evaluated_metrics() without the metrics for which the data have nothing to measure.
std::vector<std::unique_ptr<Accumulator>> make_accumulators(const Graph& graph,
                                                            const Measuring& measuring = {});

}  // namespace muster::compute
