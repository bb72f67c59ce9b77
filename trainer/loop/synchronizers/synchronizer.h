#pragma once

#include <filesystem>
#include <memory>
#include <stop_token>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/compute/loss_sums.h"

namespace muster::loop {

// A copy of the training state at one step, to be written while training goes on.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual const checkpoint::Position& position() const = 0;
  // Writes the tensors into `directory` and says so in `manifest` (files, shard_steps, position).
  // May take long; called from another thread. Each file not faster than `bytes_per_second`; 0: as
  // fast as may be. Throws WriteError; Unavailable where a shard is lost; Invalid (kDiverged) for
  // values that are not finite.
  virtual void write(const std::filesystem::path& directory, checkpoint::Manifest& manifest,
                     double bytes_per_second) = 0;
  // Somebody waits for it: as fast as may be from here on. From any thread, also before write().
  virtual void hurry() = 0;
};

// Where a member's gradients meet the others' and become new parameters: by itself, through
// parameter servers, by collectives. The loop knows no more of the group than this. One caller.
class Synchronizer {
 public:
  enum class State {
    ok,
    rejoin,       // the group has changed: start() again; the step may be repeated
    interrupted,  // asked to stop while waiting
  };
  struct StepResult {
    State state = State::ok;
    compute::LossSums sums;  // of the whole group, since the last result
  };

  virtual ~Synchronizer() = default;

  // Takes a place in the group and its parameters. False if `stop` was requested meanwhile. What
  // step() waits for ends by the same `stop`.
  virtual bool start(std::stop_token stop) = 0;
  // Whether there is another update to compute; not where training is finished.
  virtual bool has_next() = 0;
  // Computes it, brings it in and comes back with the parameters after it in the engine.
  // Precondition: has_next().
  virtual StepResult step() = 0;

  // Where training stands. Async: epoch and batch are of the last work, and what others trained on
  // counts as of its epoch; a snapshot knows better.
  virtual const checkpoint::Position& position() const { return position_; }
  virtual uint64_t generation() const = 0;
  // Of rank 0 only, between two steps: what an evaluation has come to is a part of the position
  // from here on. Where the workload is finished by it, there is no further update, here and at
  // every other member.
  virtual void evaluated(const checkpoint::Evaluations& evaluations) {
    position_.evaluations = evaluations;
  }
  // Of rank 0 only; takes the place of the one before, which must have been written. Throws
  // Unavailable.
  virtual std::unique_ptr<Snapshot> snapshot() = 0;

 protected:
  checkpoint::Position& mutable_position() { return position_; }

 private:
  checkpoint::Position position_;
};

}  // namespace muster::loop
