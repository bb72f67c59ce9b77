#include "trainer/compute/metrics/metric.h"

#include <algorithm>

namespace muster::compute {

std::optional<double> value_of(std::span<const Metric> metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &Metric::name);
  if (found == metrics.end()) return std::nullopt;
  return found->value;
}

}  // namespace muster::compute
