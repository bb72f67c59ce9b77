#pragma once

#include <cstdint>
#include <optional>

namespace muster::checkpoint {

// The best value of a metric, and where training stood when an evaluation found it.
struct Best {
  double value = 0;  // finite
  uint64_t step = 0;
  uint64_t epoch = 0;
  bool operator==(const Best&) const = default;
};

// The results of evaluations, by which a training may end. They are a part of Position, so that a
// training that was interrupted and evaluates between its steps ends where an undisturbed one does,
// with the same weights.
struct Evaluations {
  uint64_t epoch = 0;                // passes over the data before the newest one; 0: none yet
  std::optional<Best> best;          // by earlyStopping: improvements beyond minDelta
  uint64_t without_improvement = 0;  // evaluations since `best`
  std::optional<Best> kept;          // by checkpoint.bestOnly: any improvement
  std::optional<Best> reached;       // what ended the training by stopWhen
  uint64_t step = 0;                 // of the parameters of the newest one; 0: none yet
  bool operator==(const Evaluations&) const = default;
};

}  // namespace muster::checkpoint
