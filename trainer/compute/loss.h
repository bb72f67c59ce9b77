#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/compute/loss_sums.h"
#include "trainer/compute/models/model_spec.h"

namespace muster::compute {

// A number that a loss says of rows: a sum, divided.
struct Metric {
  std::string name;  // "accuracy"
  double value = 0;
};

// The metrics of a loss over the rows of `sums`, "loss" first: loss / weight, then each term /
// rows. All are 0 where there are no rows.
//   softmaxCrossEntropy: accuracy, the share of rows whose largest output is their label's
//   meanSquaredError:    none but the loss
std::vector<Metric> metrics_of(Loss loss, const LossSums& sums);

// The one of this name; nothing where the loss has none.
std::optional<double> metric_of(Loss loss, const LossSums& sums, const std::string& name);

// Whether a sample's label is a class, rather than floats.
bool takes_classes(Loss loss);

}  // namespace muster::compute
