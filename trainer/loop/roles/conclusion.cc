#include "trainer/loop/roles/conclusion.h"

#include <nlohmann/json.hpp>

#include "common/documents/json.h"
#include "common/job/metric_name.h"
#include "common/program/log.h"
#include "common/program/time_ledger.h"
#include "common/system/file.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/checkpoint/store/restore.h"
#include "trainer/folder/owner.h"
#include "trainer/loop/batches/stopping.h"
#include "trainer/loop/evaluation/best_mark.h"
#include "trainer/loop/roles/unconverged.h"
#include "trainer/onnx/export.h"

namespace muster::loop {

namespace fs = std::filesystem;

checkpoint::Store::Found to_export(const checkpoint::Store& store,
                                   const checkpoint::Store::Found& final,
                                   const spec::TrainingSpec& spec) {
  const auto& best = final.manifest.position.evaluations.best;
  if (!spec.early_stopping || !spec.early_stopping->restore_best) return final;
  if (!best) {
    log::warning("restoreBest: no evaluation had given a finite " + spec.early_stopping->metric +
                 " when the training ended: the last weights are taken");
    return final;
  }
  if (best->step == final.manifest.position.step) return final;
  if (auto found = store.of_step(best->step)) return *found;
  log::warning("restoreBest: the best checkpoint, of step " + std::to_string(best->step) +
               ", is not there or damaged: the last weights are taken");
  return final;
}

Json Conclusion::evaluate_final(const checkpoint::Position& position) {
  const Spending evaluating(TimeUse::final_evaluation);
  const uint64_t step = position.step;
  recorder_.set_state("evaluating");
  const Json json =
      evaluate_step(*assembly_.engine, assembly_.training, *data_, membership_.storage, position,
                    true, recorder_.shows_pictures(step),
                    validator_ ? validator_->newest() : Json(), {})
          .value();
  for (const char* name : {"validation", "test"})
    for_each_number(name, member(json, name), [&](const std::string& tag, double value) {
      recorder_.scalar(tag, step, value);
    });
  if (const Json& validation = member(json, "validation"); validation.is_object())
    recorder_.show_validation(step, validation);
  return json;
}

// Returns the best result of the evaluations and its checkpoint; null if there were none.
Json Conclusion::describe_best(const checkpoint::Position& position) const {
  const auto result = best_of(position.evaluations, assembly_.spec());
  if (!result) return nullptr;
  const bool kept = store_ && assembly_.spec().keeps_best();
  return loop::describe_best(*result, kept ? store_->of_step(result->best.step) : std::nullopt);
}

Json Conclusion::describe(const checkpoint::Position& position) const {
  const compute::LossSums trained = position.sums.last_whole(position.epoch);
  Json result = {{"step", position.step},
                 {"epochs", position.epoch},
                 {"trainSeconds", recorder_.train_seconds()},
                 {"examplesPerSecond", recorder_.examples_per_second()},
                 {"stepsPerSecond", recorder_.steps_per_second()}};
  const compute::LossKind& loss = assembly_.spec().model.loss;
  for (const compute::MetricDefinition& metric : compute::trained_metrics(loss))
    result[metric_field("train", metric.name)] = nullptr;
  for (const auto& [name, value] : compute::metrics_of(loss, trained))
    result[metric_field("train", name)] = value;
  const Json rate = result["stepsPerSecond"];
  result["secondsPerBatch"] = rate.is_number() ? Json(1.0 / rate.get<double>()) : Json();
  if (assembly_.spec().early_stopping)
    result["stoppedEarly"] = is_stopped(position.evaluations, assembly_.spec().early_stopping);
  if (const auto& rule = assembly_.spec().stop_when) {
    const auto& reached = position.evaluations.reached;
    result["reached"] = reached ? Json{{"metric", rule->metric},
                                       {"value", reached->value},
                                       {"step", reached->step},
                                       {"epoch", reached->epoch}}
                                : Json();
  }
  if (const Json best = describe_best(position); !best.is_null()) result["best"] = best;
  return result;
}

// Writes the final model, and its paths relative to the job's folder into `result`.
void Conclusion::export_model(std::span<const float> parameters, Json& result) const {
  const fs::path& folder = membership_.storage;
  const data::SampleFormat samples = assembly_.train->format();
  const fs::path model = checkpoint::export_model(folder, assembly_.engine->layout(), parameters,
                                                  assembly_.training.json, data::to_json(samples));
  result["model"] = fs::relative(model, folder).string();
  if (!assembly_.spec().export_onnx) return onnx::remove_onnx(folder);
  if (const auto onnx = onnx::export_onnx(folder, assembly_.spec().model, parameters, samples))
    result["onnx"] = fs::relative(*onnx, folder).string();
}

Json Conclusion::write(const std::optional<checkpoint::Store::Found>& final,
                       const checkpoint::Position& position) {
  const compute::ParameterLayout& layout = assembly_.engine->layout();
  assembly_.engine->use_own();
  compute::HostView view(assembly_.engine->parameters());
  const std::span<float> parameters = view.values();
  Json result = describe(position);
  checkpoint::Position exported = position;
  if (final) {
    const checkpoint::Store::Found source = to_export(*store_, *final, assembly_.spec());
    exported = source.manifest.position;
    if (exported.step != position.step)
      log::info("the best weights are exported, those of step " + std::to_string(exported.step));
    checkpoint::load_weights(source, layout, parameters);
    view.store();
    folder::require_no_other_owner(membership_.storage, membership_.uid);
    result["checkpoint"] = path_of(*final);
    export_model(parameters, result);
  }
  // The training may have ended earlier than planned, or may export the weights of an earlier step.
  if (exported.step < assembly_.workload->total_steps({}))
    warn_of_unconverged_averages(assembly_.spec(), layout, exported.step);
  result["exportedStep"] = exported.step;
  if (final && final->manifest.job_uid != membership_.uid) result["alreadyFinished"] = true;
  result["weightsDigest"] = checkpoint::weights_digest(layout, parameters);
  if (!membership_.has_evaluator()) {
    const Json evaluation = evaluate_final(exported);
    for (const char* name : {"validation", "test"})
      if (evaluation.contains(name)) result[name] = evaluation[name];
  }
  if (!membership_.storage.empty()) {
    folder::require_no_other_owner(membership_.storage, membership_.uid);
    Json written = result;
    written["jobUid"] = membership_.uid;
    if (const TimeLedger* const ledger = TimeLedger::of_this_thread())
      written["ledger"] = ledger->json();
    write_file_atomically(membership_.storage / "result.json", written.dump(2) + "\n");
  }
  recorder_.set_state("done");
  recorder_.flush();
  return result;
}

}  // namespace muster::loop
