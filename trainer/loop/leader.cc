#include "trainer/loop/leader.h"

#include <nlohmann/json.hpp>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/file.h"
#include "common/json.h"
#include "common/log.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/checkpoint/resume.h"
#include "trainer/group/storage_patience.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

Recorder::Options recorder_options(const spec::TrainingSpec& spec) {
  Recorder::Options options;
  options.summary_every_steps = spec.summary_every_steps;
  options.classification = spec.model.loss == compute::Loss::softmax_cross_entropy;
  options.schedule = &spec.schedule;
  return options;
}

std::optional<EvaluationData> open_evaluation(const group::Membership& membership,
                                              Training& training) {
  if (membership.has_evaluator()) return std::nullopt;
  EvaluationData data(training);
  data.require_all();
  return data;
}

std::unique_ptr<summary::EventWriter> open_events(const group::Membership& membership,
                                                  std::stop_token stop) {
  if (membership.storage.empty()) return nullptr;
  const fs::path folder = membership.storage / "events" /
                          (membership.role_name + "-" + std::to_string(membership.index));
  group::patiently(stop, [&] { group::require_writable(folder); });
  return std::make_unique<summary::EventWriter>(folder);
}

Checkpointer::Options checkpointer_options(const group::Membership& membership,
                                           const Assembly& assembly) {
  Checkpointer::Options options;
  options.storage = membership.storage;
  options.owner = {membership.uid, membership.job};
  options.when = assembly.spec().checkpoint;
  options.manifest.job_uid = membership.uid;
  options.manifest.model = assembly.spec().model.name;
  options.manifest.layout_fingerprint = assembly.engine->layout().fingerprint();
  options.manifest.fingerprint = assembly.determinism_fingerprint();
  options.manifest.training = assembly.training.json;
  return options;
}

}  // namespace

bool is_finished(const std::optional<checkpoint::Store::Found>& newest, const Workload& workload) {
  return newest && newest->manifest.final && workload.finished(newest->manifest.position);
}

std::unique_ptr<checkpoint::Store> open_store(const group::Membership& membership,
                                              const Assembly& assembly) {
  if (membership.storage.empty()) return nullptr;
  return std::make_unique<checkpoint::Store>(membership.storage / "checkpoints",
                                             assembly.spec().checkpoint.keep);
}

Leader::Leader(const group::Membership& membership, Assembly& assembly, metrics::Reporter& reporter,
               std::unique_ptr<checkpoint::Store> store,
               std::function<void(uint64_t step)> published, std::stop_token stop)
    : membership_(membership),
      assembly_(assembly),
      data_(open_evaluation(membership, assembly.training)),
      recorder_(recorder_options(assembly.spec()), reporter, open_events(membership, stop)),
      store_(std::move(store)) {
  if (!store_) return;
  group::patiently(stop, [&] { group::require_writable(membership.storage / "checkpoints"); });
  auto options = checkpointer_options(membership, assembly);
  options.published = [this, published = std::move(published)](uint64_t step, double seconds) {
    recorder_.checkpoint_published(step, seconds);
    if (published) published(step);
  };
  options.failed = [this] { recorder_.checkpoint_failed(); };
  checkpointer_ = std::make_unique<Checkpointer>(*store_, std::move(options));
}

checkpoint::Position Leader::resume_at(const checkpoint::Store::Found& found) const {
  const std::string name = found.directory.filename().string();
  const checkpoint::Resumption resumption =
      checkpoint::resume(found.manifest, assembly_.training.json, membership_.distributed());
  require_no_problems(
      checkpoint::problems_of(resumption, name, "",
                              [&](const std::string&) { return membership_.training.string(); }),
      kBadInput);
  check_layout(found);
  // `muster run` has warned of it, with the lines of its manifest.
  if (!resumption.changed.empty())
    log::info("what follows " + name + " is trained with " +
              spec::list_changes(resumption.changed, 10));
  check_determinism(found);
  return assembly_.workload->settled(resumption.position);
}

void Leader::check_layout(const checkpoint::Store::Found& found) const {
  const std::string ours = assembly_.engine->layout().fingerprint();
  const std::string& theirs = found.manifest.layout_fingerprint;
  if (theirs == ours) return;
  throw Invalid(found.directory.string() + ": expected a checkpoint of this model (layout " +
                ours.substr(0, 12) + "), found one of \"" + found.manifest.model + "\" (layout " +
                theirs.substr(0, 12) + "): take another directory, or initializeFrom");
}

void Leader::check_determinism(const checkpoint::Store::Found& found) const {
  const std::string ours = assembly_.determinism_fingerprint();
  if (found.manifest.fingerprint.empty() || found.manifest.fingerprint == ours) return;
  const std::string text = found.directory.filename().string() + " was made by \"" +
                           found.manifest.fingerprint + "\", this is \"" + ours +
                           "\": results will not be the same to the bit";
  if (assembly_.spec().strict_determinism) throw Invalid("determinism: strict: " + text);
  log::warning(text);
}

void Leader::save(Synchronizer& synchronizer) {
  if (!checkpointer_ || synchronizer.generation() == 0) return;
  try {
    checkpointer_->take_now(synchronizer, recorder_.state(synchronizer.position()), false);
  } catch (const Unavailable& error) {
    log::warning(std::string("nothing was saved before leaving: ") + error.what());
  }
}

std::optional<checkpoint::Store::Found> Leader::save_final(Synchronizer& synchronizer) {
  recorder_.set_state("finishing");
  if (!checkpointer_) return std::nullopt;
  return checkpointer_->take_now(synchronizer, recorder_.state(synchronizer.position()), true);
}

Json Leader::evaluate_final(uint64_t step) {
  recorder_.set_state("evaluating");
  const Json json =
      evaluate_step(*assembly_.engine, assembly_.training, *data_, membership_.storage, step, true);
  for (const char* name : {"validation", "test"})
    for (const auto& [key, value] : member(json, name).items())
      recorder_.scalar(std::string(name) + "_" + key, step, value.get<double>());
  return json;
}

Json Leader::conclude_again(const checkpoint::Store::Found& final) {
  const checkpoint::Position& position = final.manifest.position;
  recorder_.restore(final.manifest.metrics);
  recorder_.begin(position, position.step, final.manifest.generation);
  recorder_.set_state("finishing");
  return conclude(final, position);
}

Json Leader::conclude(const std::optional<checkpoint::Store::Found>& final,
                      const checkpoint::Position& position) {
  const compute::ParameterLayout& layout = assembly_.engine->layout();
  const auto parameters = assembly_.engine->parameters();
  const auto known = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json result = {{"step", position.step},
                 {"epochs", position.epoch},
                 {"trainLoss", known(position.sums.train_loss(position.epoch))},
                 {"trainSeconds", recorder_.train_seconds()},
                 {"examplesPerSecond", recorder_.examples_per_second()},
                 {"stepsPerSecond", recorder_.steps_per_second()}};
  if (recorder_options(assembly_.spec()).classification)
    result["trainAccuracy"] = known(position.sums.train_accuracy(position.epoch));
  const Json rate = result["stepsPerSecond"];
  result["secondsPerBatch"] = rate.is_number() ? Json(1.0 / rate.get<double>()) : Json();
  if (final) {
    checkpoint::Store::load(*final, layout, {0, layout.size()}, parameters, "");
    result["checkpoint"] = (fs::path("checkpoints") / final->directory.filename()).string();
    result["model"] = fs::relative(checkpoint::export_model(membership_.storage, layout, parameters,
                                                            assembly_.training.json),
                                   membership_.storage)
                          .string();
  }
  result["weightsDigest"] = checkpoint::weights_digest(layout, parameters);
  if (data_) {
    const Json evaluation = evaluate_final(position.step);
    for (const char* name : {"validation", "test"})
      if (evaluation.contains(name)) result[name] = evaluation[name];
  }
  if (!membership_.storage.empty())
    write_file_atomically(membership_.storage / "result.json", result.dump(2) + "\n");
  recorder_.set_state("done");
  recorder_.flush();
  return result;
}

}  // namespace muster::loop
