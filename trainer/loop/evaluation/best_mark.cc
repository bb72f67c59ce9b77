#include "trainer/loop/evaluation/best_mark.h"

#include <nlohmann/json.hpp>
#include <string>

#include "common/documents/json.h"
#include "common/documents/json_file.h"
#include "common/error.h"
#include "common/program/log.h"
#include "trainer/spec/metric.h"

namespace muster::loop {

std::string path_of(const checkpoint::Store::Found& found) {
  return (std::filesystem::path("checkpoints") / found.directory.filename()).string();
}

Json describe_best(const BestResult& result, const std::optional<checkpoint::Store::Found>& found) {
  Json json = {{"metric", result.metric},
               {"value", result.best.value},
               {"step", result.best.step},
               {"epoch", result.best.epoch}};
  if (found) json["checkpoint"] = path_of(*found);
  return json;
}

void BestMark::take(const checkpoint::Store::Found& found, const Json& evaluation) {
  if (!looked_) best_ = value_of_marked();
  looked_ = true;
  const std::optional<double> value = compared(evaluation);
  if (!value || !is_better(*value, best_)) return;
  best_ = value;
  mark(found);
}

Json BestMark::conclude(const checkpoint::Store::Found& final, const Json& evaluation) {
  const checkpoint::Position& position = final.manifest.position;
  const auto step_of_best = store_.step_of_best();
  if (spec_.early_stopping && spec_.early_stopping->restore_best) {
    const auto result = best_of(position.evaluations, spec_);
    if (!result || step_of_best == result->best.step) return nullptr;
    if (const auto found = store_.of_step(result->best.step)) mark(*found);
    return nullptr;
  }
  const auto value = compared(evaluation);
  if (!spec_.checkpoint.best_only || !value || step_of_best != position.step) return nullptr;
  // Rank 0 may know a better checkpoint, which the evaluator has skipped.
  const auto& kept = position.evaluations.kept;
  if (!is_better(*value, kept ? std::optional(kept->value) : std::nullopt)) return nullptr;
  const checkpoint::Best best{*value, position.step, position.epoch};
  return describe_best({*spec_.checkpoint.best_only, best}, final);
}

void BestMark::mark(const checkpoint::Store::Found& found) {
  try {
    store_.mark_best(found);
  } catch (const Unavailable& error) {
    log::warning(error.what());
  }
}

// Returns nothing if the evaluation does not have the value.
std::optional<double> BestMark::compared(const Json& evaluation) const {
  const std::string metric = spec::metric_of(spec_.model.loss, spec_.best_metric()).name;
  const Json& value = member(member(evaluation, "validation"), metric.c_str());
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

bool BestMark::is_better(double value, std::optional<double> than) const {
  return improves(spec::metric_of(spec_.model.loss, spec_.best_metric()).better, value, than);
}

std::optional<double> BestMark::value_of_marked() const {
  const auto step = store_.step_of_best();
  if (!step) return std::nullopt;
  return compared(read_json_or_null(storage_ / "evaluations" / (std::to_string(*step) + ".json")));
}

}  // namespace muster::loop
