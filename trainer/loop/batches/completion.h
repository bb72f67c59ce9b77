#pragma once

#include <optional>

#include "common/documents/document.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Whether a training has nothing left to do: asked by replicas of every role, which need neither
// its data nor its model for that.
class Completion {
 public:
  // `training`: a whole training block (its schema applied). `distributed`: through parameter
  // servers.
  Completion(Json training, bool distributed);

  // Whether `manifest` is of the final checkpoint of a training which would end there by the
  // training block, too. Not so, for example, if the block has more epochs or another stopWhen.
  bool covers(const checkpoint::Manifest& manifest) const;

 private:
  bool has_same_end(const Json& other) const;

  Json training_;
  spec::TrainingSpec spec_;
  bool distributed_;
};

}  // namespace muster::loop
