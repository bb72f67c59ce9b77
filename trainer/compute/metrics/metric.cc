#include "trainer/compute/metrics/metric.h"

#include <algorithm>

namespace muster::compute {

double value_of(std::span<const Metric> metrics, const std::string& name) {
  return std::ranges::find(metrics, name, &Metric::name)->value;
}

}  // namespace muster::compute
