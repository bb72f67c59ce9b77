#pragma once

#include <cstdint>
#include <optional>

namespace muster::checkpoint {

// The best value of a metric, and the position of the training at which it was found.
struct Best {
  double value = 0;  // finite
  uint64_t step = 0;
  uint64_t epoch = 0;
  bool operator==(const Best&) const = default;
};

// The results of evaluations, by which a training may end. They are part of Position, so that an
// interrupted training that evaluates between its steps ends at the same step and with the same
// weights as an undisturbed one.
struct Evaluations {
  uint64_t epoch = 0;                // number of epochs before the newest evaluation; 0: none yet
  std::optional<Best> best;          // best by earlyStopping: improvements beyond minDelta
  uint64_t without_improvement = 0;  // evaluations since `best`
  std::optional<Best> kept;          // best by checkpoint.bestOnly: any improvement
  std::optional<Best> reached;       // the value that ended the training by stopWhen
  uint64_t step = 0;                 // step of the newest evaluation's parameters; 0: none yet
  bool operator==(const Evaluations&) const = default;
};

}  // namespace muster::checkpoint
