#pragma once

#include <optional>

#include "common/documents/document.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/spec/training_spec.h"

namespace muster::checkpoint {

// Returns true if early stopping ends the training.
bool is_stopped(const Evaluations& evaluations, const std::optional<spec::EarlyStoppingSpec>& rule);
// Returns true if early stopping or stopWhen has ended the training.
bool has_ended(const Evaluations& evaluations, const spec::TrainingSpec& spec);

// Returns the reason of the end of a training that ended with these evaluations.
End end_of(const Evaluations& evaluations, const spec::TrainingSpec& spec);

// Returns true if a training at this position is as long as the spec asks for.
bool is_whole(const Position& position, const spec::TrainingSpec& spec);

// Tells whether a training has nothing left to do. Replicas of every role use it; it needs neither
// the data nor the model.
class Completion {
 public:
  // `training`: a whole training block, with its schema applied. `distributed`: the job trains
  // through parameter servers.
  Completion(Json training, bool distributed);

  // Whether `manifest` belongs to the final checkpoint of a training, and the training block would
  // end the training there too. False, for example, if the block has more epochs or another
  // stopWhen.
  bool covers(const Manifest& manifest) const;

 private:
  bool has_same_end(const Json& other) const;

  Json training_;
  spec::TrainingSpec spec_;
  bool distributed_;
};

}  // namespace muster::checkpoint
