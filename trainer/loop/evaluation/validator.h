#pragma once

#include <filesystem>
#include <span>
#include <stop_token>

#include "trainer/loop/checkpointer.h"
#include "trainer/loop/evaluation/evaluation.h"
#include "trainer/loop/recorder.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/loop/training.h"

namespace muster::loop {

// Evaluation within the training: rank 0 evaluates the parameters, or their moving average,
// between two steps, after every `evaluation.everyEpochs` epochs. Early stopping and
// checkpoint.bestOnly use the results. The other members wait for rank 0's part of the next step
// meanwhile.
class Validator {
 public:
  // Writes evaluations/<step>.json below `storage`, unless that is empty. `checkpointer` may be
  // null. The references must outlive the validator.
  Validator(Assembly& assembly, const EvaluationData& data, std::filesystem::path storage,
            Recorder& recorder, Checkpointer* checkpointer);

  // Whether to evaluate now. Costs a step a few comparisons.
  bool due(const checkpoint::Position& position) const {
    return position.next_batch == 0 && position.epoch > position.evaluations.epoch &&
           position.epoch % every_epochs_ == 0;
  }
  // Evaluates, reports, and takes a checkpoint if this is the best state so far, the best is to be
  // kept, and this is not the final checkpoint anyway. Returns false if asked to stop meanwhile:
  // nothing is recorded then, and the evaluation is due again.
  bool run(Synchronizer& synchronizer, std::stop_token stop);

  // The newest evaluation of this process, as evaluate_step() gives it; null: there was none.
  const Json& newest() const { return newest_; }

 private:
  std::optional<Evaluation> evaluate(Synchronizer& synchronizer, std::stop_token stop);
  void write(const Json& evaluation, std::span<const Picture> pictures);
  void keep_best(Synchronizer& synchronizer, const checkpoint::Position& before);

  Assembly& assembly_;
  const EvaluationData& data_;
  const std::filesystem::path storage_;
  Recorder& recorder_;
  Checkpointer* const checkpointer_;
  const uint64_t every_epochs_;
  compute::Floats weights_;  // only where the optimizer keeps a moving average
  Json newest_;
};

}  // namespace muster::loop
