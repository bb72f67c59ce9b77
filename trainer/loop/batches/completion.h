#pragma once

#include <optional>

#include "common/documents/document.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

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
  bool covers(const checkpoint::Manifest& manifest) const;

 private:
  bool has_same_end(const Json& other) const;

  Json training_;
  spec::TrainingSpec spec_;
  bool distributed_;
};

}  // namespace muster::loop
