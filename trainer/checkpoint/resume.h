#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/problem.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/spec/changes.h"

namespace muster::checkpoint {

// How a training goes on from a checkpoint that may have been made with another one.
struct Resumption {
  // A field that keeps it from going on.
  struct Obstacle {
    spec::Change change;
    std::string why;  // what the user can do
  };
  Position position;  // of the checkpoint, in batches (async: tickets) of `training`
  std::vector<Obstacle> obstacles;
  std::vector<spec::Change> changed;  // what the rest is done with instead: worth a warning
};

// Compares manifest.training with `training`, a whole training block (its schema applied).
// Obstacles are tensors of other names or shapes, an optimizer with slots that the checkpoint has
// not, and batches of another size where what is done of the epoch is no whole number of them;
// only the latter may be left out, where the data decide: the layout's fingerprint knows. How long
// it trains (steps, epochs, earlyStopping) and how it evaluates, saves, shows and computes may
// change without a word; what evaluations have come to is forgotten where what follows has another
// metric or other validation data.
// `distributed`: through parameter servers.
Resumption resume(const Manifest& manifest, const Json& training, bool distributed);

// The obstacles of going on from `checkpoint` ("ckpt-12-g1") as problems of a document in which the
// training stands at `path`; `where` says on which line ("job.yaml:12").
std::vector<Problem> problems_of(const Resumption& resumption, const std::string& checkpoint,
                                 const std::string& path,
                                 const std::function<std::string(const std::string&)>& where);

}  // namespace muster::checkpoint
