#include "trainer/loop/evaluation/stop_rule.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/program/log.h"
#include "trainer/loop/batches/stopping.h"

namespace muster::loop {

namespace {

// Returns the numbers of the evaluation's validation data; nothing if they could not be evaluated.
// A value that is not finite is null in the file.
std::optional<std::vector<compute::Metric>> metrics_of(const Json& evaluation) {
  const Json& validation = member(evaluation, "validation");
  if (!validation.is_object() || validation.contains("error")) return std::nullopt;
  std::vector<compute::Metric> metrics;
  for (const auto& [name, value] : validation.items()) {
    if (value.is_number()) metrics.push_back({name, value.get<double>()});
    if (value.is_null()) metrics.push_back({name, std::numeric_limits<double>::quiet_NaN()});
  }
  return metrics;
}

}  // namespace

std::string compares_evaluations(const spec::TrainingSpec& spec) {
  if (spec.stop_when && !spec.stop_when->by_training()) return "stopWhen";
  if (spec.early_stopping) return "earlyStopping";
  return spec.checkpoint.best_only ? "checkpoint.bestOnly" : "";
}

StopRule::StopRule(const spec::TrainingSpec& spec, const std::filesystem::path& storage, Show show)
    : spec_(spec), compares_(!compares_evaluations(spec).empty()), show_(std::move(show)) {
  if (!storage.empty()) results_.emplace(storage);
}

void StopRule::begin(const checkpoint::Position& position) {
  epoch_ = 0;
  if (results_) results_->begin(position);
}

void StopRule::apply(Synchronizer& synchronizer) {
  const checkpoint::Position& position = synchronizer.position();
  const bool news = results_ && results_->has_news();
  const bool epoch = position.epoch > epoch_;
  if ((!news && !epoch) || has_ended(position.evaluations, spec_)) return;
  checkpoint::Evaluations next = news ? after_evaluations(position) : position.evaluations;
  if (epoch && !has_ended(next, spec_)) next.reached = reached_by_training(position, spec_);
  epoch_ = position.epoch;
  if (next == position.evaluations) return;
  synchronizer.evaluated(next);
  tell_end(synchronizer.position(), spec_);
}

void StopRule::conclude(Synchronizer& synchronizer) {
  if (results_) results_->look();
  try {
    apply(synchronizer);
  } catch (const Invalid& error) {
    log::warning(error.what());
  }
}

// Results found after the training has ended, or that nothing is compared with, change nothing.
checkpoint::Evaluations StopRule::after_evaluations(const checkpoint::Position& position) {
  checkpoint::Position at;
  at.evaluations = position.evaluations;
  for (const Json& evaluation : results_->take()) {
    if (has_ended(at.evaluations, spec_)) break;
    const auto metrics = metrics_of(evaluation);
    at.step = static_cast<uint64_t>(integer_or(evaluation, "step", 0));
    if (at.step <= at.evaluations.step) continue;
    if (!metrics) {  // the evaluation failed: its checkpoint need not be kept
      if (compares_) at.evaluations.step = at.step;
      continue;
    }
    if (show_) show_(at.step, member(evaluation, "validation"));
    if (!compares_) continue;
    at.epoch = static_cast<uint64_t>(
        integer_or(evaluation, "epoch", static_cast<int64_t>(position.epoch)));
    at.evaluations = after(at, *metrics, spec_);
  }
  return at.evaluations;
}

}  // namespace muster::loop
