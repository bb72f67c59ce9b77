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
    std::string why;  // what the user can do
  };
  Position position;  // of the checkpoint, in batches (async: tickets) of `training`
  std::vector<Obstacle> obstacles;
  std::vector<spec::Change> changed;  // fields that change what follows: worth a warning
};

// Compares manifest.training with `training`, a whole training block (its schema applied).
// Obstacles are tensors of other names or shapes, an optimizer with slots that the checkpoint does
// not have, and batches of another size if the samples done of the epoch are no whole number of
// them. Tensors that differ through the data alone are not found here, but by the layout's
// fingerprint. How long it trains (steps, epochs, earlyStopping) and how it evaluates, saves, shows
// and computes may change without a warning. Results of evaluations are dropped if the loss, the
// metric or the validation data differ. `distributed` means: through parameter servers.
Resumption resume(const Manifest& manifest, const Json& training, bool distributed);

// Returns the obstacles to resuming from `checkpoint` ("ckpt-12-g1") as problems of a document in
// which the training stands at `path`; `where` returns the place of a field ("job.yaml:12").
std::vector<Problem> problems_of(const Resumption& resumption, const std::string& checkpoint,
                                 const std::string& path,
                                 const std::function<std::string(const std::string&)>& where);

}  // namespace muster::checkpoint
