#pragma once

#include <filesystem>
#include <optional>

#include "common/document.h"
#include "trainer/checkpoint/store/store.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

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
  // Marks the checkpoint that rank 0 took for the best when the training ended, so that it is the
  // one of result.json. `evaluations` are those of the final checkpoint.
  void settle(const checkpoint::Evaluations& evaluations);

 private:
  void mark(const checkpoint::Store::Found& found);
  std::optional<double> compared(const Json& evaluation) const;
  std::optional<double> value_of_marked() const;

  checkpoint::Store& store_;
  const spec::TrainingSpec& spec_;
  const std::filesystem::path storage_;
  bool looked_ = false;         // for what is marked already
  std::optional<double> best_;  // the value of what is marked
};

}  // namespace muster::loop
