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

// Evaluation within the training: rank 0 evaluates the parameters, or their moving average, between
// two steps, after every `evaluation.everyEpochs` epochs. Early stopping and checkpoint.bestOnly
// use the results. Meanwhile the other members wait for rank 0's part of the next step.
class Validator {
 public:
  // Writes evaluations/<step>.json below `storage`, unless that is empty. `checkpointer` may be
  // null. The references must outlive the validator.
  Validator(Assembly& assembly, const EvaluationData& data, std::filesystem::path storage,
            Recorder& recorder, Checkpointer* checkpointer);

  // Whether to evaluate now. Adds a few comparisons to a step.
  bool due(const checkpoint::Position& position) const {
    return position.next_batch == 0 && position.epoch > position.evaluations.epoch &&
           position.epoch % every_epochs_ == 0;
  }
  // Evaluates and reports. Takes a checkpoint if this is the best state so far, the best state
  // should be kept, and the final checkpoint does not follow anyway. Returns false if a stop was
  // requested: nothing is recorded then, and the evaluation stays due.
  bool run(Synchronizer& synchronizer, std::stop_token stop);

  // Returns the newest evaluation of this process, in the form of evaluate_step(); null if there
  // was none.
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
  compute::Floats weights_;  // used only if the optimizer keeps a moving average
  Json newest_;
};

}  // namespace muster::loop
