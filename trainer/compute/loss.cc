#include "trainer/compute/loss.h"

namespace muster::compute {

namespace {

// Names of LossSums::terms.
const std::vector<std::string>& terms_of(Loss loss) {
  static const std::vector<std::string> classification{"accuracy"}, none;
  return takes_classes(loss) ? classification : none;
}

}  // namespace

bool takes_classes(Loss loss) {
  return loss == Loss::softmax_cross_entropy;
}

std::vector<Metric> metrics_of(Loss loss, const LossSums& sums) {
  const double rows = static_cast<double>(sums.rows);
  std::vector<Metric> metrics{{"loss", sums.weight > 0 ? sums.loss / sums.weight : 0}};
  const auto& terms = terms_of(loss);
  for (size_t i = 0; i < terms.size(); ++i)
    metrics.push_back({terms[i], sums.rows > 0 ? sums.terms[i] / rows : 0});
  return metrics;
}

std::optional<double> metric_of(Loss loss, const LossSums& sums, const std::string& name) {
  for (const Metric& metric : metrics_of(loss, sums))
    if (metric.name == name) return metric.value;
  return std::nullopt;
}

}  // namespace muster::compute
