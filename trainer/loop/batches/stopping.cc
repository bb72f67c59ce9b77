#include "trainer/loop/batches/stopping.h"

#include <algorithm>
#include <cmath>

#include "trainer/spec/metric.h"

namespace muster::loop {

namespace {

bool improves(compute::Better better, double value, const std::optional<checkpoint::Best>& best,
              double min_delta) {
  if (!std::isfinite(value)) return false;
  if (!best) return true;
  return better == compute::Better::lower ? value + min_delta < best->value
                                          : value - min_delta > best->value;
}

}  // namespace

checkpoint::Evaluations after(const checkpoint::Position& position,
                              std::span<const compute::Metric> metrics,
                              const spec::TrainingSpec& spec) {
  checkpoint::Evaluations result = position.evaluations;
  result.epoch = position.epoch;
  // Makes the evaluation's value the new `best` if it is better; returns whether it is.
  const auto take = [&](const std::string& name, std::optional<checkpoint::Best>& best,
                        double min_delta) {
    const compute::MetricDefinition metric = spec::metric_of(spec.model.loss, name);
    const double value = compute::value_of(metrics, metric.name);
    const bool better = improves(metric.better, value, best, min_delta);
    if (better) best = {value, position.step, position.epoch};
    return better;
  };
  if (const auto& rule = spec.early_stopping) {
    const bool better = take(rule->metric, result.best, rule->min_delta);
    result.without_improvement = better ? 0 : result.without_improvement + 1;
  }
  if (const auto& metric = spec.checkpoint.best_only) take(*metric, result.kept, 0);
  return result;
}

bool is_stopped(const checkpoint::Evaluations& evaluations,
                const std::optional<spec::EarlyStoppingSpec>& rule) {
  return rule && evaluations.without_improvement >= std::max<uint64_t>(1, rule->patience);
}

}  // namespace muster::loop
