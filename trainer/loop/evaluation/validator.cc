#include "trainer/loop/evaluation/validator.h"

#include <fmt/format.h>

#include "common/error.h"
#include "common/log.h"
#include "trainer/compute/other_parameters.h"
#include "trainer/loop/batches/stopping.h"

namespace muster::loop {

Validator::Validator(Assembly& assembly, const EvaluationData& data, std::filesystem::path storage,
                     Recorder& recorder, Checkpointer* checkpointer)
    : assembly_(assembly),
      data_(data),
      storage_(std::move(storage)),
      recorder_(recorder),
      checkpointer_(checkpointer),
      every_epochs_(assembly.spec().evaluate_every_epochs.value()) {}

bool Validator::run(Synchronizer& synchronizer, std::stop_token stop) {
  const checkpoint::Position before = synchronizer.position();
  const auto begun = Recorder::Clock::now();
  recorder_.set_state("evaluating");
  const auto evaluation = evaluate(synchronizer, stop);
  recorder_.set_state("training");
  if (!evaluation) return false;
  newest_ = {{"step", before.step}, {"final", false}, {"validation", evaluation->json()}};
  write(newest_);
  synchronizer.evaluated(after(before, evaluation->metrics, assembly_.spec()));
  tell(synchronizer.position());
  recorder_.validated(before, newest_["validation"], Recorder::Clock::now() - begun);
  keep_best(synchronizer, before);
  return true;
}

std::optional<Evaluation> Validator::evaluate(Synchronizer& synchronizer, std::stop_token stop) {
  compute::Engine& engine = *assembly_.engine;
  std::optional<compute::OtherParameters> averaged;
  if (assembly_.optimizer->average_slot()) {
    weights_.resize(engine.layout().size());
    synchronizer.read_weights(weights_);
    averaged.emplace(engine, weights_);
  }
  return evaluate_validation(engine, assembly_.training, data_, synchronizer.position().step, stop);
}

void Validator::write(const Json& evaluation) {
  try {
    write_evaluation(storage_, evaluation);
  } catch (const Unavailable& error) {
    log::warning(std::string("training goes on: ") + error.what());
  }
}

void Validator::tell(const checkpoint::Position& position) const {
  if (const auto& reached = position.evaluations.reached)
    tell_reached(*reached, *assembly_.spec().stop_when);
  const auto& rule = assembly_.spec().early_stopping;
  if (!is_stopped(position.evaluations, rule)) return;
  const auto& best = position.evaluations.best;
  log::info(fmt::format(
      "early stopping after epoch {}, at step {}: {} has not improved for {} "
      "evaluations; the best was {}",
      position.epoch, position.step, rule->metric, position.evaluations.without_improvement,
      best ? fmt::format("{:.6g} after epoch {}, at step {}", best->value, best->epoch, best->step)
           : "never a finite number"));
}

void Validator::keep_best(Synchronizer& synchronizer, const checkpoint::Position& before) {
  const checkpoint::Position& position = synchronizer.position();
  const auto& rule = assembly_.spec().early_stopping;
  const bool better =
      position.evaluations.kept != before.evaluations.kept ||
      (rule && rule->restore_best && position.evaluations.best != before.evaluations.best);
  if (better && checkpointer_ && !assembly_.workload->finished(position))
    checkpointer_->take_best(synchronizer, recorder_.state(position));
}

}  // namespace muster::loop
