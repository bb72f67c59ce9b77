#pragma once

#include <filesystem>
#include <optional>

#include "trainer/loop/evaluation/evaluator_results.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// What rank 0 decides by the training loss and by the results of an evaluator beside the training:
// whether stopWhen or earlyStopping ends the training, and which checkpoint is the best. It decides
// for all, and its decision is a part of the position, so that it is in the checkpoints. It follows
// from the position and the files of the evaluations, which are taken in the order of their steps;
// so a rank 0 that takes the place of another decides the same, though it may notice it at another
// step. Evaluations within the training are the Validator's to look at.
class StopRule {
 public:
  // If `storage` is not empty, another process evaluates the checkpoints and leaves its results
  // there. `spec` must outlive the rule.
  StopRule(const spec::TrainingSpec& spec, const std::filesystem::path& storage);

  // To be called when the synchronizer has started: its position may have gone back.
  void begin(const checkpoint::Position& position);
  // Decides, between two steps, by what is known by now. Costs a step a few comparisons. Throws
  // Invalid if a metric by which the spec compares is not in an evaluation.
  void apply(Synchronizer& synchronizer);
  // Decides at the end of the training, by all results that are there. Reads the storage. An
  // evaluation that cannot be compared is logged: the training is over, and must be saved.
  void conclude(Synchronizer& synchronizer);

 private:
  checkpoint::Evaluations after_evaluations(const checkpoint::Position& position);

  const spec::TrainingSpec& spec_;
  std::optional<EvaluatorResults> results_;  // none: nobody else evaluates
  uint64_t epoch_ = 0;                       // up to which the training loss is looked at
};

}  // namespace muster::loop
