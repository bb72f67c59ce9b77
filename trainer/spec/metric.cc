#include "trainer/spec/metric.h"

#include <algorithm>

#include "common/job/metric_name.h"

namespace muster::spec {

namespace {

std::string name_of(const compute::MetricDefinition& metric) {
  return metric_field("validation", metric.name);
}

}  // namespace

std::vector<std::string> metric_names(const compute::LossKind& loss) {
  std::vector<std::string> names;
  for (const auto& metric : compute::evaluated_metrics(loss)) names.push_back(name_of(metric));
  return names;
}

std::vector<std::string> all_metric_names() {
  std::vector<std::string> names;
  for (const auto& loss : compute::all_losses())
    for (std::string& name : metric_names(loss))
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  return names;
}

compute::MetricDefinition metric_of(const compute::LossKind& loss, const std::string& name) {
  const auto metrics = compute::evaluated_metrics(loss);
  return *std::ranges::find(metrics, name, name_of);
}

}  // namespace muster::spec
