#include "trainer/loop/evaluation/validator.h"

#include "common/error.h"
#include "common/program/log.h"
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
  newest_ = {{"step", before.step},
             {"epoch", before.epoch},
             {"final", false},
             {"validation", evaluation->json()}};
  write(newest_, evaluation->pictures);
  synchronizer.evaluated(after(before, evaluation->metrics, assembly_.spec()));
  tell_end(synchronizer.position(), assembly_.spec());
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

void Validator::write(const Json& evaluation, std::span<const Picture> pictures) {
  try {
    write_evaluation(storage_, evaluation);
    publish_pictures(storage_, "validation", pictures,
                     recorder_.shows_pictures(evaluation["step"].get<uint64_t>()));
  } catch (const Unavailable& error) {
    log::warning(std::string("training goes on: ") + error.what());
  }
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
