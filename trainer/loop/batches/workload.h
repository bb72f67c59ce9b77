#pragma once

#include <cstdint>
#include <optional>

#include "trainer/checkpoint/files/manifest.h"
#include "trainer/data/order/cursor.h"
#include "trainer/data/order/shards.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// The logical replicas of a step that one reader of batches computes, one after the other: `count`
// replicas, numbered `first`, `first` + `distance` and so on.
struct Turn {
  int first = 0;
  int count = 1;
  int distance = 1;
  int taken = 0;  // number of finished replicas
  int replica() const { return first + taken * distance; }
};

// Consecutive batches of an epoch that one replica computes for one update. Batches beyond the
// epoch's end are empty.
struct Work {
  // The first batch; in asynchronous training its prediction of the next work is a guess.
  data::Cursor at;
  // Number of the ticket; in synchronous training that of the step's first part.
  uint64_t ticket = 0;

  uint64_t epoch() const { return at.epoch; }
  uint64_t first_batch() const { return at.batch(); }
  int batches() const { return static_cast<int>(at.share.batches); }
};

data::BatchRule batch_rule(const spec::TrainingSpec& spec);

// The amount of work and its division among members, computed from sizes alone. In synchronous
// training (policy sync, or a process that trains alone) a step is members x accumulation batches,
// and member r computes the r-th part of them. In asynchronous training a ticket is `accumulation`
// batches for each device of a process. A member here is one device.
class Workload {
 public:
  // Throws Invalid if the data and the spec give no step. `distributed` is false for a process that
  // trains alone, which ignores the spec's policy and trains synchronously.
  Workload(const spec::TrainingSpec& spec, uint64_t samples, int members, bool distributed);
  // For data that are not divided by record.
  Workload(const spec::TrainingSpec& spec, const data::Shards& shards, int members,
           bool distributed);

  // Changes the number of members. Positions count batches, so they stay valid.
  void resize(int members) { members_ = static_cast<uint64_t>(members); }

  uint64_t samples() const { return samples_; }
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint64_t steps_per_epoch() const;
  // Returns the steps of the whole training: the steps done at `position` plus the remaining steps.
  // It is an upper bound if early stopping or stopWhen may end the training.
  uint64_t total_steps(const checkpoint::Position& position) const;

  // Whether early stopping or stopWhen has ended the training at `position`.
  bool is_stopped(const checkpoint::Position& position) const;
  // Whether the training has ended at `position`: by its length, or because it is_stopped().
  bool finished(const checkpoint::Position& position) const;
  // Returns `position` in terms of these sizes: a position at or beyond the end of its epoch
  // (because there were more data then, or because of a remainder) becomes the beginning of the
  // next epoch.
  checkpoint::Position within_epoch(checkpoint::Position position) const;
  // Moves `position` one committed step further. Precondition: synchronous training.
  void advance(checkpoint::Position& position) const;
  // Returns the work of the replica turn.replica().
  Work part_of(const checkpoint::Position& position, const Turn& turn) const;
  Work part_of(const checkpoint::Position& position, int replica) const {
    return part_of(position, Turn{replica});
  }

  uint64_t tickets_per_epoch() const;
  uint64_t total_tickets() const;
  uint64_t whole_epochs() const;  // number of whole epochs in all tickets
  // Returns the part of a ticket for the device of this turn. The device's number within the
  // process is turn.first.
  Work ticket(uint64_t number, const Turn& turn = {}) const;

 private:
  Work work(uint64_t ticket, uint64_t epoch, uint64_t first_batch, const Turn& turn) const;

  uint64_t samples_;
  uint64_t batches_per_epoch_;
  uint64_t members_;
  uint64_t accumulation_;
  std::optional<uint64_t> epochs_;
  std::optional<uint64_t> steps_;
  bool async_;
  uint64_t batches_per_ticket_;
  std::optional<spec::EarlyStoppingSpec> early_stopping_;
};

}  // namespace muster::loop
