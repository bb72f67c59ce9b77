#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "common/documents/document.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/loop/batches/stopping.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Returns the checkpoint's path relative to the job's folder.
std::string path_of(const checkpoint::Store::Found& found);

// Returns how result.json describes the best result: {"metric", "value", "step", "epoch"}, and
// "checkpoint" if `found`, the checkpoint of the result, is given.
Json describe_best(const BestResult& result, const std::optional<checkpoint::Store::Found>& found);

// For an evaluator that runs beside the training: marks the best checkpoint by
// TrainingSpec::best_metric().
class BestMark {
 public:
  // `storage` has, in evaluations/, the results of the evaluator's earlier processes. The
  // references must outlive this object.
  BestMark(checkpoint::Store& store, const spec::TrainingSpec& spec, std::filesystem::path storage)
      : store_(store), spec_(spec), storage_(std::move(storage)) {}

  // Marks `found` if its evaluation (`evaluation`, the content of evaluations/<step>.json) is
  // better than that of the marked checkpoint. An error of the storage is logged.
  void take(const checkpoint::Store::Found& found, const Json& evaluation);
  // Call this after the final checkpoint `final` has been evaluated, with its `evaluation`. With
  // earlyStopping.restoreBest, rank 0 exports the best weights; conclude() then marks the
  // checkpoint that result.json names as the best. Otherwise, with bestOnly, result.json names the
  // best checkpoint before the end. If the final checkpoint is better, conclude() returns the new
  // text for result.json (describe_best()), else null.
  Json conclude(const checkpoint::Store::Found& final, const Json& evaluation);

 private:
  void mark(const checkpoint::Store::Found& found);
  std::optional<double> compared(const Json& evaluation) const;
  std::optional<double> value_of_marked() const;
  bool is_better(double value, std::optional<double> than) const;

  checkpoint::Store& store_;
  const spec::TrainingSpec& spec_;
  const std::filesystem::path storage_;
  bool looked_ = false;         // whether the present mark has been looked up
  std::optional<double> best_;  // the value of the marked checkpoint
};

}  // namespace muster::loop
