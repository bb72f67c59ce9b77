#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "trainer/loop/evaluation/evaluator_results.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Returns the first field that needs evaluations; "" if there is none.
std::string compares_evaluations(const spec::TrainingSpec& spec);

// Rank 0's decisions from the training loss and from the results of an evaluator beside the
// training: whether stopWhen or earlyStopping ends the training, and which checkpoint is the best.
// Rank 0 decides for all members. A decision is part of the position, and so of the checkpoints. It
// depends only on the position and on the files of evaluations, which are read in the order of
// their steps; so a new rank 0 comes to the same decision, perhaps at a later step. The Validator
// handles evaluations within the training.
class StopRule {
 public:
  // If `storage` is not empty, another process evaluates the checkpoints and writes its results
  // there; `show` is called with each result on validation data that the rule takes, also if `spec`
  // compares none. `spec` must outlive the rule.
  using Show = std::function<void(uint64_t step, const Json& validation)>;
  StopRule(const spec::TrainingSpec& spec, const std::filesystem::path& storage, Show show = {});

  // Call this when the synchronizer has started, because its position may have gone back.
  void begin(const checkpoint::Position& position);
  // Decides, between two steps, by all results known so far. Adds a few comparisons to a step.
  // Throws Invalid if an evaluation lacks a metric that the spec compares.
  void apply(Synchronizer& synchronizer);
  // Decides at the end of the training, by all results in the storage, which it reads. An
  // evaluation that cannot be compared is only logged, because the training is over and must be
  // saved.
  void conclude(Synchronizer& synchronizer);

 private:
  checkpoint::Evaluations after_evaluations(const checkpoint::Position& position);

  const spec::TrainingSpec& spec_;
  const bool compares_;  // whether a decision depends on evaluations
  const Show show_;
  std::optional<EvaluatorResults> results_;  // nothing: no other process evaluates
  uint64_t epoch_ = 0;                       // last epoch whose training loss was considered
};

}  // namespace muster::loop
