#include "trainer/loop/stopping.h"

#include <algorithm>
#include <cmath>

namespace muster::loop {

namespace {

bool improves(spec::Metric metric, double value, const std::optional<checkpoint::Best>& best,
              double min_delta) {
  if (!std::isfinite(value)) return false;
  if (!best) return true;
  return metric == spec::Metric::validation_loss ? value + min_delta < best->value
                                                 : value - min_delta > best->value;
}

}  // namespace

double value_of(const Evaluation& evaluation, spec::Metric metric) {
  return evaluation.value(metric == spec::Metric::validation_loss ? "loss" : "accuracy");
}

checkpoint::Evaluations after(const checkpoint::Position& position, const Evaluation& evaluation,
                              const spec::TrainingSpec& spec) {
  checkpoint::Evaluations result = position.evaluations;
  result.epoch = position.epoch;
  const auto found = [&](spec::Metric metric) {
    return checkpoint::Best{value_of(evaluation, metric), position.step, position.epoch};
  };
  if (const auto& rule = spec.early_stopping) {
    const checkpoint::Best now = found(rule->metric);
    const bool better = improves(rule->metric, now.value, result.best, rule->min_delta);
    if (better) result.best = now;
    result.without_improvement = better ? 0 : result.without_improvement + 1;
  }
  if (const auto& metric = spec.checkpoint.best_only) {
    const checkpoint::Best now = found(*metric);
    if (improves(*metric, now.value, result.kept, 0)) result.kept = now;
  }
  return result;
}

bool is_stopped(const checkpoint::Evaluations& evaluations,
                const std::optional<spec::EarlyStoppingSpec>& rule) {
  return rule && evaluations.without_improvement >= std::max<uint64_t>(1, rule->patience);
}

}  // namespace muster::loop
