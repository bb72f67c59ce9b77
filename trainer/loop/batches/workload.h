#pragma once

#include <cstdint>
#include <optional>

#include "trainer/checkpoint/manifest.h"
#include "trainer/data/cursor.h"
#include "trainer/data/shards.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Those of a step's logical replicas that one reader of batches computes, one after the other:
// `count` from `first` on, each `distance` after the one before.
struct Turn {
  int first = 0;
  int count = 1;
  int distance = 1;
  int taken = 0;  // of count
  int replica() const { return first + taken * distance; }
};

// Consecutive batches of an epoch that one replica computes for one update; those beyond the
// epoch's end are empty.
struct Work {
  data::Cursor at;      // the first one; asynchronously, what it says of the next work is a guess
  uint64_t ticket = 0;  // of the training's work, in order; in step: of the step's first part

  uint64_t epoch() const { return at.epoch; }
  uint64_t first_batch() const { return at.batch(); }
  int batches() const { return static_cast<int>(at.share.batches); }
};

data::BatchRule batch_rule(const spec::TrainingSpec& spec);

// How much there is to do and who does what, from sizes alone.
// In step with the group (sync, and a process by itself) a step is members x accumulation batches,
// and member r computes the r-th part of them. Asynchronously a ticket is `accumulation` batches.
class Workload {
 public:
  // Throws Invalid where the data and the spec come to no step at all.
  // A process by itself has no policy: it is in step with itself.
  Workload(const spec::TrainingSpec& spec, uint64_t samples, int members, bool distributed);
  // Of data that are shared otherwise than by record.
  Workload(const spec::TrainingSpec& spec, const data::Shards& shards, int members,
           bool distributed);

  // So many compute together from here on; positions count batches, so they stay what they are.
  void resize(int members) { members_ = static_cast<uint64_t>(members); }

  uint64_t samples() const { return samples_; }
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint64_t steps_per_epoch() const;
  // Of the whole training: those that are left from `position`, and those it has; at most, where
  // early stopping may end it.
  uint64_t total_steps(const checkpoint::Position& position) const;

  // By its length, or by what evaluations have come to (early stopping).
  bool finished(const checkpoint::Position& position) const;
  // The same place as a position that says so by our sizes: one at or beyond the end of its epoch
  // (of data that were more then, or with a remainder) is the next one's beginning.
  checkpoint::Position settled(checkpoint::Position position) const;
  // One committed step further. Precondition: sync.
  void advance(checkpoint::Position& position) const;
  // What the replica whose turn it is computes.
  Work part_of(const checkpoint::Position& position, const Turn& turn) const;
  Work part_of(const checkpoint::Position& position, int replica) const {
    return part_of(position, Turn{replica});
  }

  uint64_t tickets_per_epoch() const;
  uint64_t total_tickets() const;
  uint64_t whole_epochs() const;  // of all tickets
  Work ticket(uint64_t number) const;

 private:
  data::Share share_of(const Turn& turn) const;

  uint64_t samples_;
  uint64_t batches_per_epoch_;
  uint64_t members_;
  uint64_t accumulation_;
  std::optional<uint64_t> epochs_;
  std::optional<uint64_t> steps_;
  bool async_;
  std::optional<spec::EarlyStoppingSpec> early_stopping_;
};

}  // namespace muster::loop
