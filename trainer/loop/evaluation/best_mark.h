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
// "checkpoint" if `found`, its checkpoint, is there.
Json describe_best(const BestResult& result, const std::optional<checkpoint::Store::Found>& found);

// Marks the checkpoint that an evaluator beside the training has found to be the best, by
// TrainingSpec::best_metric().
class BestMark {
 public:
  // `storage` has the results of the process before this one in evaluations/. The references must
  // outlive it.
  BestMark(checkpoint::Store& store, const spec::TrainingSpec& spec, std::filesystem::path storage)
      : store_(store), spec_(spec), storage_(std::move(storage)) {}

  // Marks `found` if `evaluation`, the content of its evaluations/<step>.json, is better than that
  // of the checkpoint that is marked. An error of the storage is logged.
  void take(const checkpoint::Store::Found& found, const Json& evaluation);
  // To be called once the final checkpoint `final` is evaluated, with its `evaluation`. Where
  // earlyStopping.restoreBest has rank 0 export the best weights, it marks the checkpoint that
  // result.json names as the best. Otherwise, with bestOnly, result.json names what was the best
  // before the end: it returns what is to stand there instead (describe_best()) if the final
  // checkpoint is better; else null.
  Json settle(const checkpoint::Store::Found& final, const Json& evaluation);

 private:
  void mark(const checkpoint::Store::Found& found);
  std::optional<double> compared(const Json& evaluation) const;
  std::optional<double> value_of_marked() const;
  bool is_better(double value, std::optional<double> than) const;

  checkpoint::Store& store_;
  const spec::TrainingSpec& spec_;
  const std::filesystem::path storage_;
  bool looked_ = false;         // for what is marked already
  std::optional<double> best_;  // the value of what is marked
};

}  // namespace muster::loop
