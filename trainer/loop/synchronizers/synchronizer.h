#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>

#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/compute/loss_sums.h"

namespace muster::loop {

// How long a synchronizer waits for its group before it checks for a stop.
constexpr std::chrono::milliseconds kGlance{200};

// A copy of the training state at one step, to be written while training goes on.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual const checkpoint::Position& position() const = 0;
  // Writes the tensors into `directory` and records them in `manifest` (files, shard_steps,
  // position). May take long; called from another thread. Writes each file at `bytes_per_second` at
  // most; 0: at full speed. Throws WriteError; Unavailable if a shard is lost; Invalid (kDiverged)
  // for values that are not finite.
  virtual void write(const std::filesystem::path& directory, checkpoint::Manifest& manifest,
                     double bytes_per_second) = 0;
  // Makes write() go on at full speed. May be called from any thread, also before write().
  virtual void hurry() = 0;
};

// What a step has cost, beside what the thread's ledger says.
struct StepCosts {
  // Seconds that this thread spent on the update, where the update is neither part of computing the
  // gradients nor made by others.
  double update_seconds = 0;
  // Bytes of gradients and parameters that this member has sent and received.
  uint64_t bytes = 0;
};

// Combines the gradients of a member with those of the others, and makes new parameters from them:
// alone, through parameter servers, or by collectives. The training loop knows the group only
// through this interface. For one calling thread.
class Synchronizer {
 public:
  enum class State {
    ok,
    rejoin,       // the group has changed: start() again; the step may be repeated
    interrupted,  // asked to stop while waiting
  };
  struct StepResult {
    State state = State::ok;
    compute::LossSums sums;  // sums of the whole group since the last result
    StepCosts costs;
  };

  virtual ~Synchronizer() = default;

  // Takes a place in the group and gets the group's parameters. Returns false if `stop` was
  // requested. The same `stop` ends the waits of step().
  virtual bool start(std::stop_token stop) = 0;
  // Whether there is another update to compute; false if training is finished.
  virtual bool has_next() = 0;
  // Computes the next update and contributes it. On return the engine has the parameters after the
  // update. Precondition: has_next().
  virtual StepResult step() = 0;

  // Whether the state is that of position(). A synchronizer may be a few steps ahead of the results
  // of step(). Until is_at_position() is true, do not call snapshot(), read_weights() or
  // evaluated().
  virtual bool is_at_position() const { return true; }
  // Whether the state of position() may be saved or evaluated. If each member holds the whole
  // state, the members must have compared their states before. They compare after a step after
  // which rank 0 foresees a checkpoint, an evaluation or the end, and when they enter a generation.
  // A checkpoint that was not foreseen waits for the next step; an end that was not foreseen waits
  // for another generation.
  virtual bool compared() const { return true; }

  // The position of the training. Asynchronous training: epoch and batch are those of the last
  // work, and the work of other members counts as work of the same epoch; a snapshot has the exact
  // numbers.
  virtual const checkpoint::Position& position() const { return position_; }
  virtual uint64_t generation() const = 0;
  // Makes the results of an evaluation part of the position. Called by rank 0 only, between two
  // steps. If they finish the workload, there is no further update, here and at every other member.
  virtual void evaluated(const checkpoint::Evaluations& evaluations) {
    position_.evaluations = evaluations;
  }
  // Writes the weights that an evaluation uses, layout().size() floats: the parameters; if the
  // optimizer keeps a moving average, the average replaces the trainable parameters. Called by rank
  // 0 only, between two steps, and only with evaluation within the training.
  virtual void read_weights(std::span<float> to) = 0;
  // Makes a snapshot, which replaces the snapshot before it. Precondition: that snapshot has been
  // written. Called by rank 0 only. Throws Unavailable.
  virtual std::unique_ptr<Snapshot> snapshot() = 0;

 protected:
  checkpoint::Position& mutable_position() { return position_; }

 private:
  checkpoint::Position position_;
};

}  // namespace muster::loop
