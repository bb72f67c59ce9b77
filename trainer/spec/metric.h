#pragma once

#include <string>
#include <vector>

#include "trainer/compute/loss.h"

namespace muster::spec {

// earlyStopping and bestOnly go by a metric of evaluations on the validation data, which the
// manifest names as common/metric_name.h says: "validationLoss".

// The names that a model with this loss can go by; of any loss: each name once.
std::vector<std::string> metric_names(const compute::LossKind& loss);
std::vector<std::string> all_metric_names();

// The metric of this name, as evaluations know it. Precondition: it is one of metric_names(loss).
compute::MetricDefinition metric_of(const compute::LossKind& loss, const std::string& name);

}  // namespace muster::spec
