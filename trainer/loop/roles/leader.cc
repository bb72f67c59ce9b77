#include "trainer/loop/roles/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/program/time_ledger.h"
#include "common/system/file.h"
#include "trainer/checkpoint/start/completion.h"
#include "trainer/checkpoint/start/resume.h"
#include "trainer/group/storage_patience.h"
#include "trainer/loop/gpu_report.h"
#include "trainer/loop/roles/conclusion.h"
#include "trainer/loop/roles/unconverged.h"

namespace muster::loop {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostNamed = 10;  // most changed fields that are named

Recorder::Options recorder_options(const spec::TrainingSpec& spec) {
  Recorder::Options options;
  options.summary_every_steps = spec.summary_every_steps;
  options.loss = spec.model.loss;
  options.schedule = &spec.schedule;
  return options;
}

std::optional<EvaluationData> open_evaluation(const group::Membership& membership,
                                              Training& training) {
  std::vector<std::string> names;
  if (training.spec.evaluate_every_epochs || !membership.has_evaluator())
    names.emplace_back("validation");
  if (!membership.has_evaluator()) names.emplace_back("test");
  if (names.empty()) return std::nullopt;
  EvaluationData data(training, names);
  data.require_all();
  return data;
}

void require_place_for_best(const group::Membership& membership, const spec::TrainingSpec& spec) {
  if (!spec.keeps_best() || !membership.storage.empty()) return;
  throw Invalid(
      std::string(spec.checkpoint.best_only ? "checkpoint.bestOnly" : "earlyStopping.restoreBest") +
          ": expected a storage folder (--storage), where the best checkpoint is kept, found none",
      kBadConfig);
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
  options.job_uid = membership.uid;
  options.when = assembly.spec().checkpoint;
  options.manifest.job_uid = membership.uid;
  options.manifest.model = assembly.spec().model.name;
  options.manifest.layout_fingerprint = assembly.engine->layout().fingerprint();
  options.manifest.fingerprint = assembly.determinism_fingerprint();
  options.manifest.training = assembly.training.json;
  options.manifest.samples = data::to_json(assembly.train->format());
  return options;
}

}  // namespace

void require_same_training(const checkpoint::Store::Found& final,
                           const group::Membership& membership, const Training& training) {
  const bool same_job = !membership.uid.empty() && final.manifest.job_uid == membership.uid;
  const auto changes = spec::changes_of_weights(final.manifest.training, training.json);
  if (same_job || changes.empty()) return;
  throw Invalid("expected the training that has finished in " + membership.storage.string() +
                    ", found one that differs in " + spec::list_changes(changes, kMostNamed) +
                    ": nothing is left to train. Give it more epochs or steps, or another folder, "
                    "where initializeFrom takes the weights",
                kBadInput);
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
      reporter_(reporter),
      data_(open_evaluation(membership, assembly.training)),
      recorder_(recorder_options(assembly.spec()), reporter, open_events(membership, stop)),
      store_(std::move(store)) {
  require_place_for_best(membership, assembly.spec());
  report_gpus(reporter, compute::choose_devices(assembly.spec().device, assembly.spec().devices));
  warn_of_unconverged_averages(assembly.spec(), assembly.engine->layout(),
                               assembly.workload->total_steps({}));
  if (store_) open_checkpointer(std::move(published), stop);
  if (assembly.spec().evaluate_every_epochs)
    validator_.emplace(assembly, *data_, membership.storage, recorder_, checkpointer_.get());
  open_stop_rule();
}

void Leader::open_stop_rule() {
  const spec::TrainingSpec& spec = assembly_.spec();
  const std::string compares = compares_evaluations(spec);
  const bool needs = !compares.empty() && !spec.evaluate_every_epochs;
  const bool watches = membership_.has_evaluator() && !spec.evaluate_every_epochs && store_;
  if (needs && !membership_.has_evaluator())
    throw Invalid(
        compares + ": expected `evaluation` within the training, or an evaluator, found neither",
        kBadConfig);
  if (needs) store_->leave_evaluated(membership_.storage / "evaluations");
  if (watches || spec.stop_when)
    stop_rule_.emplace(spec, watches ? membership_.storage : fs::path(),
                       [this](uint64_t step, const Json& validation) {
                         recorder_.show_validation(step, validation);
                       });
}

void Leader::open_checkpointer(std::function<void(uint64_t step)> published, std::stop_token stop) {
  group::patiently(stop, [&] { group::require_writable(membership_.storage / "checkpoints"); });
  auto options = checkpointer_options(membership_, assembly_);
  options.published = [this, published = std::move(published)](uint64_t step, double seconds) {
    recorder_.checkpoint_published(step, seconds);
    if (published) published(step);
  };
  options.failed = [this] { recorder_.checkpoint_failed(); };
  options.met = [this](const std::string& request, const checkpoint::Store::Found& found) {
    log::info(fmt::format("{} is the checkpoint that was asked for (\"{}\")",
                          found.directory.filename().string(), request));
    tell_met(request, found);
  };
  checkpointer_ = std::make_unique<Checkpointer>(*store_, std::move(options));
}

void Leader::tell_met(const std::string& request, const checkpoint::Store::Found& found) {
  reporter_.met_request(request, found.manifest.position.step, found.directory.string());
}

void Leader::begin(const std::optional<checkpoint::Store::Found>& newest) {
  if (newest) recorder_.restore(newest->manifest.metrics);
  if (!checkpointer_ || membership_.checkpoint_request.empty()) return;
  const bool of_this_job = newest && newest->manifest.job_uid == membership_.uid;
  if (of_this_job && !newest->manifest.request.empty()) {
    checkpointer_->met_before(newest->manifest.request);
    tell_met(newest->manifest.request, *newest);
  }
  requests_.emplace(membership_.checkpoint_request,
                    [this](const std::string& request) { checkpointer_->request(request); });
}

bool Leader::saves_at(const checkpoint::Position& position) const {
  const auto& rule = assembly_.spec().stop_when;  // by the training loss it may end any epoch
  return (rule && rule->by_training() && position.next_batch == 0) ||
         (validator_ && validator_->due(position)) ||
         (checkpointer_ && checkpointer_->due(position, Checkpointer::Clock::now()));
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
  say_resumption(found.manifest.job_uid, name, resumption.changed);
  check_determinism(found);
  return assembly_.workload->within_epoch(resumption.position);
}

// In a job, `muster run` has already warned of changes, with the lines of its manifest.
void Leader::say_resumption(const std::string& trained_by, const std::string& name,
                            const std::vector<spec::Change>& changed) const {
  std::string text;
  if (trained_by != membership_.uid)
    text =
        "training goes on from " + name + ", which " +
        (trained_by.empty() ? "a training by itself" : "an earlier job (uid " + trained_by + ")") +
        " has left";
  if (!changed.empty())
    text += (text.empty() ? "" : "; ") + ("what follows " + name) + " is trained with " +
            spec::list_changes(changed, kMostNamed);
  if (text.empty()) return;
  log::info(text);
  reporter_.resumed(text);
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
  const Spending stopping(TimeUse::stopping);
  try {
    checkpointer_->take_now(synchronizer, recorder_.state(synchronizer.position()), {});
  } catch (const Unavailable& error) {
    log::warning(std::string("nothing was saved before leaving: ") + error.what());
  }
}

std::optional<checkpoint::Store::Found> Leader::save_final(Synchronizer& synchronizer) {
  const Spending exporting(TimeUse::exporting);
  recorder_.set_state("finishing");
  if (!checkpointer_) return std::nullopt;
  const checkpoint::Position position = synchronizer.position();
  return checkpointer_->take_now(synchronizer, recorder_.state(position),
                                 end_of(position.evaluations, assembly_.spec()));
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
  const Spending exporting(TimeUse::exporting);
  return Conclusion(membership_, assembly_, recorder_, store_.get(), data_ ? &*data_ : nullptr,
                    validator())
      .write(final, position);
}

}  // namespace muster::loop
