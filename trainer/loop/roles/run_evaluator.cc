#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/threads/pause.h"
#include "trainer/checkpoint/start/completion.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/checkpoint/store/restore.h"
#include "trainer/folder/owner.h"
#include "trainer/group/backoff.h"
#include "trainer/loop/evaluation/best_mark.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/evaluation/patient_reader.h"
#include "trainer/loop/gpu_report.h"
#include "trainer/loop/roles/conclusion.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/metrics/reporter.h"
#include "trainer/summary/event_writer.h"

namespace muster::loop {

using std::chrono::milliseconds;

namespace {

// Makes the engine of a model whose input and labels the data have decided.
std::unique_ptr<compute::Engine> make_engine(const Training& training) {
  const auto threads = ThreadChoice::from_environment(training.spec.threads);
  compute::EngineOptions options;
  options.device = compute::choose_devices(training.spec.device, 1).front();
  options.precision = training.spec.precision;
  options.max_rows = training.spec.batch_size;
  options.threads = threads.threads;
  options.exclusive = false;  // it runs at the same time as the training
  return compute::Engine::create(training.spec.model, options);
}

class EvaluatorLoop {
 public:
  // `data` are of `training`; at least one part can be used.
  EvaluatorLoop(const group::Membership& membership, const Training& training,
                const EvaluationData& data)
      : membership_(membership),
        training_(training),
        completion_(training.json, membership.distributed()),
        data_(data),
        engine_(make_engine(training_)),
        store_(membership.storage / "checkpoints", training_.spec.checkpoint.keep),
        best_(store_, training_.spec, membership.storage),
        reporter_(membership.http_address, membership.role_name, membership.index,
                  membership.restarts) {
    report_gpus(reporter_, compute::choose_devices(training_.spec.device, 1));
  }

  // Returns true once the final checkpoint of this training is evaluated, false if asked to stop.
  bool run(std::stop_token stop) {
    const auto folder = membership_.storage / "events" /
                        (membership_.role_name + "-" + std::to_string(membership_.index));
    group::patiently(stop, [&] { group::require_writable(folder); });
    events_ = std::make_unique<summary::EventWriter>(folder);
    group::Backoff backoff(milliseconds(100), milliseconds(1000));
    set_state("waiting", 0);
    while (!stop.stop_requested()) {
      Look seen = Look::nothing_new;
      reader_.attempt([&] { seen = look(stop); });
      if (seen == Look::done) return true;
      if (seen == Look::went_on)
        backoff.reset();
      else
        pause_for(backoff.next(), stop);
    }
    return false;
  }

 private:
  enum class Look { nothing_new, went_on, done };
  Look look(std::stop_token stop) {
    // Until our rank 0 has claimed the folder, its checkpoints may be those of another job.
    if (!folder::is_owned_by(membership_.storage, membership_.uid)) return Look::nothing_new;
    const auto found = store_.newest();
    if (!found || found->directory == last_) return Look::nothing_new;
    return evaluate_one(*found, stop) ? Look::done : Look::went_on;
  }

  // Returns true if `found` is the final checkpoint of this training.
  bool evaluate_one(const checkpoint::Store::Found& found, std::stop_token stop) {
    const bool final = is_final(found.manifest);
    const auto judge = [&](const checkpoint::Store::Found& evaluated, Json& evaluation) {
      best_.take(evaluated, evaluation);
      if (!final) return;
      if (Json best = best_.conclude(found, evaluation); !best.is_null())
        evaluation["best"] = std::move(best);
    };
    if (!evaluate(final ? to_export(store_, found, training_.spec) : found, final, judge, stop))
      return false;
    last_ = found.directory;
    return final;
  }

  // Whether training ends at this checkpoint, or had ended before, whatever the manifest says now.
  bool is_final(const checkpoint::Manifest& manifest) const {
    return completion_.covers(manifest) || (manifest.is_final() && membership_.trained);
  }

  using Judge = std::function<void(const checkpoint::Store::Found& evaluated, Json& evaluation)>;
  // Calls `judge` before the result is written. Returns false if the checkpoint was pruned
  // meanwhile because there is a newer one, or if a stop was requested.
  bool evaluate(const checkpoint::Store::Found& found, bool final, const Judge& judge,
                std::stop_token stop) {
    const auto& manifest = found.manifest;
    const uint64_t step = manifest.position.step;
    const auto& layout = engine_->layout();
    if (manifest.layout_fingerprint != layout.fingerprint())
      throw Invalid(found.directory.string() + ": expected a checkpoint of this model, found \"" +
                    manifest.model + "\"");
    // The lease is held until it is known whether this checkpoint is the best.
    const auto lease = store_.lease(found, membership_.role_name);
    if (!lease) return false;
    {
      compute::HostView parameters(engine_->parameters());
      checkpoint::load_weights(found, layout, parameters.values());
      parameters.store();
    }
    set_state("evaluating", step);
    const ShowPicture show = [&](const std::string& tag, const Picture& picture) {
      events_->image(tag, step, picture.png, picture.height, picture.width);
    };
    const auto json =
        evaluate_step(*engine_, training_, data_, membership_.storage, manifest.position, final,
                      show, nullptr, stop, [&](Json& evaluation) { judge(found, evaluation); });
    if (!json) return false;
    publish(*json, step);
    set_state(final ? "done" : "waiting", step);
    return true;
  }

  void publish(const Json& json, uint64_t step) {
    for (const char* name : {"validation", "test"})
      for_each_number(name, member(json, name), [&](const std::string& tag, double value) {
        events_->scalar(tag, step, value);
      });
    events_->flush();
    if (const Json& validation = member(json, "validation"); validation.is_object()) {
      progress_.validation = numbers_of(validation);
      progress_.validation_step = step;
    }
  }

  void set_state(const std::string& state, uint64_t step) {
    progress_.state = state;
    progress_.step = step;
    reporter_.update(progress_);
  }

  const group::Membership& membership_;
  const Training& training_;
  const checkpoint::Completion completion_;
  const EvaluationData& data_;
  std::unique_ptr<compute::Engine> engine_;
  checkpoint::Store store_;
  BestMark best_;
  PatientReader reader_;
  metrics::Reporter reporter_;
  metrics::Progress progress_;
  std::unique_ptr<summary::EventWriter> events_;
  std::filesystem::path last_;
};

}  // namespace

int run_evaluator(const group::Membership& membership, std::stop_token stop) {
  Training training = Training::load(membership.training, membership.storage);
  take_label_count_from_layers(training.spec.model);
  const EvaluationData data(training);
  if (data.parts().empty()) {
    log::info("the job has neither validation nor test data: nothing to evaluate");
    return kSuccess;
  }
  if (!data.any_usable()) data.require_all();
  if (const std::string problems = data.problems(); !problems.empty())
    log::warning("cannot be evaluated with all its data: " + problems);
  if (!EvaluatorLoop(membership, training, data).run(stop)) return kTerminated;
  data.require_all();  // all usable data are evaluated; fail now because of the unusable data
  return kSuccess;
}

}  // namespace muster::loop
