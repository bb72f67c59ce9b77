#include "trainer/loop/batches/stopping.h"

#include <fmt/format.h>

#include <cmath>

#include "common/error.h"
#include "common/program/log.h"
#include "trainer/spec/metric.h"

namespace muster::loop {

bool improves(compute::Better better, double value, std::optional<double> best, double min_delta) {
  if (!std::isfinite(value)) return false;
  if (!best) return true;
  return better == compute::Better::lower ? value + min_delta < *best : value - min_delta > *best;
}

namespace {

// Returns the value of the metric that the manifest names in `field`.
double compared(std::span<const compute::Metric> metrics, const compute::MetricDefinition& metric,
                const char* field, const std::string& name) {
  if (const auto value = compute::value_of(metrics, metric.name)) return *value;
  throw Invalid(
      fmt::format("{}: expected a metric that the validation data give, found {}, for which they "
                  "have no objects",
                  field, name));
}

}  // namespace

checkpoint::Evaluations after(const checkpoint::Position& position,
                              std::span<const compute::Metric> metrics,
                              const spec::TrainingSpec& spec) {
  checkpoint::Evaluations result = position.evaluations;
  result.epoch = position.epoch;
  result.step = position.step;
  // Makes the evaluation's value the new `best` if it is better; returns whether it is.
  const auto take = [&](const char* field, const std::string& name,
                        std::optional<checkpoint::Best>& best, double min_delta) {
    const compute::MetricDefinition metric = spec::metric_of(spec.model.loss, name);
    const double value = compared(metrics, metric, field, name);
    const auto before = best ? std::optional(best->value) : std::nullopt;
    const bool better = improves(metric.better, value, before, min_delta);
    if (better) best = {value, position.step, position.epoch};
    return better;
  };
  if (const auto& rule = spec.early_stopping) {
    const bool better = take("earlyStopping.metric", rule->metric, result.best, rule->min_delta);
    result.without_improvement = better ? 0 : result.without_improvement + 1;
  }
  if (const auto& metric = spec.checkpoint.best_only)
    take("checkpoint.bestOnly.metric", *metric, result.kept, 0);
  if (const auto& rule = spec.stop_when; rule && !rule->by_training()) {
    const double value = compared(metrics, spec::metric_of(spec.model.loss, rule->metric),
                                  "stopWhen.metric", rule->metric);
    if (rule->is_reached_by(value)) result.reached = {value, position.step, position.epoch};
  }
  return result;
}

std::optional<BestResult> best_of(const checkpoint::Evaluations& evaluations,
                                  const spec::TrainingSpec& spec) {
  if (spec.checkpoint.best_only && evaluations.kept)
    return BestResult{*spec.checkpoint.best_only, *evaluations.kept};
  if (spec.early_stopping && evaluations.best)
    return BestResult{spec.early_stopping->metric, *evaluations.best};
  return std::nullopt;
}

std::optional<checkpoint::Best> reached_by_training(const checkpoint::Position& position,
                                                    const spec::TrainingSpec& spec) {
  if (!spec.stop_when || !spec.stop_when->by_training() || position.epoch == 0) return std::nullopt;
  const compute::LossSums sums = position.sums.of(position.epoch - 1);
  const auto loss = compute::value_of(compute::metrics_of(spec.model.loss, sums), "loss");
  if (!loss || !spec.stop_when->is_reached_by(*loss)) return std::nullopt;
  return checkpoint::Best{*loss, position.step, position.epoch};
}

namespace {

void tell_reached(const checkpoint::Best& reached, const spec::StopWhenSpec& rule) {
  log::info(fmt::format("stopWhen ends the training: {} is {:.6g} at step {} (epoch {}), {} {:.6g}",
                        rule.metric, reached.value, reached.step, reached.epoch,
                        rule.at_least ? "at least" : "at most", rule.value));
}

void tell_stopped(const checkpoint::Position& position, const spec::EarlyStoppingSpec& rule) {
  const auto& best = position.evaluations.best;
  log::info(fmt::format(
      "early stopping after epoch {}, at step {}: {} has not improved for {} "
      "evaluations; the best was {}",
      position.epoch, position.step, rule.metric, position.evaluations.without_improvement,
      best ? fmt::format("{:.6g} after epoch {}, at step {}", best->value, best->epoch, best->step)
           : "never a finite number"));
}

}  // namespace

void tell_end(const checkpoint::Position& position, const spec::TrainingSpec& spec) {
  if (const auto& reached = position.evaluations.reached) tell_reached(*reached, *spec.stop_when);
  if (is_stopped(position.evaluations, spec.early_stopping))
    tell_stopped(position, *spec.early_stopping);
}

}  // namespace muster::loop
