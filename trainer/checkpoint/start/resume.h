#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/documents/problem.h"
#include "trainer/checkpoint/files/manifest.h"
#include "trainer/spec/changes.h"

namespace muster::checkpoint {

// The way in which a training resumes from a checkpoint that may have been made with another
// training block.
struct Resumption {
  // A field whose change prevents the training from resuming.
  struct Obstacle {
    spec::Change change;
    std::string why;  // the reason, and what the user can do
  };
  Position position;  // the checkpoint's position, in batches (async: tickets) of `training`
  std::vector<Obstacle> obstacles;
  // Fields whose change influences further training: worth a warning.
  std::vector<spec::Change> changed;
};

// Compares manifest.training with `training`, a whole training block (its schema applied).
// Obstacles are tensors with other names or shapes, an optimizer with slots that the checkpoint
// does not have, and another batch size if the finished samples of the epoch are not a whole number
// of batches. Tensors that differ only because of the data are not found here, but by the layout's
// fingerprint. The length of the training (steps, epochs, earlyStopping) and settings of
// evaluating, saving, showing and computing may change without a warning. Results of evaluations
// are dropped if the loss, the metric or the validation data differ. `distributed`: the job trains
// through parameter servers.
Resumption resume(const Manifest& manifest, const Json& training, bool distributed);

// Returns the obstacles to resuming from `checkpoint` ("ckpt-12-g1") as problems of a document that
// has the training at `path`; `where` returns the place of a field ("job.yaml:12").
std::vector<Problem> problems_of(const Resumption& resumption, const std::string& checkpoint,
                                 const std::string& path,
                                 const std::function<std::string(const std::string&)>& where);

}  // namespace muster::checkpoint
