#pragma once

#include <string>
#include <vector>

#include "trainer/compute/loss.h"

namespace muster::spec {

// earlyStopping and bestOnly compare a metric of evaluations on the validation data. The manifest
// names it as in common/job/metric_name.h: "validationLoss".

// Return the names of the metrics of a model with this loss, or of all models; each name once.
std::vector<std::string> metric_names(const compute::LossKind& loss);
std::vector<std::string> all_metric_names();

// Returns the metric with this name, as evaluations name it. Precondition: it is one of
// metric_names(loss).
compute::MetricDefinition metric_of(const compute::LossKind& loss, const std::string& name);

}  // namespace muster::spec
