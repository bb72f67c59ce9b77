#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/data/files/storage.h"
#include "trainer/data/order/epoch_order.h"
#include "trainer/data/order/shards.h"
#include "trainer/data/sources/dataset.h"
#include "trainer/data/stages/augmentation.h"
#include "trainer/host/team.h"

namespace muster::data {

// A compute::Batch and the memory that it points to, allocated once.
class BatchBuffer {
 public:
  enum class Features {
    in_place,  // in the data set's memory
    copied,    // in the buffer itself
  };
  // Samples that are made on use are always in the buffer. `threads` threads, including the caller
  // of Batcher::load(), make the samples of a batch together.
  BatchBuffer(const Dataset& dataset, int64_t most_rows, Features features = Features::in_place,
              int threads = 1);
  BatchBuffer(BatchBuffer&&) = default;

  const compute::Batch& batch() const { return batch_; }
  // Returns the memory of the features; empty if they are in place.
  std::span<const std::byte> memory() const { return copies_.bytes(); }

 private:
  friend class Batcher;
  void plan(size_t row, uint64_t sample, uint64_t position);
  void finish(uint64_t epoch, size_t rows, const Shards::Held& shard);
  // The memory in which one thread makes a sample.
  struct Workbench {
    Sample sample;               // workspace of the data set
    std::exception_ptr failure;  // the error of the thread's part of a batch
  };
  void load(const Augmentation& augmentation);
  void load_together(const Augmentation& augmentation);
  void load_row(const Augmentation& augmentation, size_t row, Workbench& bench);

  const Dataset& dataset_;
  const uint64_t sample_bytes_;
  const size_t target_floats_;  // number of floats of a target, if there are targets
  Storage copies_;              // empty: features in place
  Shards::Held shard_;          // the shard of the samples
  std::vector<uint64_t> samples_;
  std::vector<const void*> features_;
  std::vector<int32_t> labels_;
  std::vector<const float*> targets_;
  std::vector<float> target_copies_;  // row by row; empty: targets in place
  std::vector<float> weights_;        // empty: samples have none
  std::vector<int32_t> groups_;       // likewise
  std::vector<uint64_t> positions_;
  compute::Batch batch_;
  std::vector<Workbench> benches_;    // one for each thread
  std::unique_ptr<host::Team> team_;  // null with one thread
};

// The batches of a data set's epochs, by number. Not thread-safe. Allocates nothing after
// construction.
class Batcher {
 public:
  // The data set must outlive this object. With stages, the buffers must hold the features.
  Batcher(const Dataset& dataset, Shards shards, bool shuffle, uint64_t seed,
          std::vector<spec::StageKind> stages = {});
  // Makes batches of all samples in their order in the data set.
  Batcher(const Dataset& dataset, int64_t rows);

  const Shards& shards() const { return shards_; }
  const Dataset& dataset() const { return dataset_; }
  // Fills the buffer with batch `number` of `epoch`; it has no rows beyond the epoch's end. Its
  // positions count through all batches of the epoch and do not depend on the thread that fills
  // them. Throws the errors of Shards::place.
  const compute::Batch& fill(BatchBuffer& buffer, uint64_t epoch, uint64_t number) {
    plan(buffer, epoch, number);
    return load(buffer);
  }
  // The two parts of fill(): plan() chooses the samples, load() gets them. Other threads may call
  // load() at the same time with other buffers. All samples that may be on a disk are requested
  // before the first one is read.
  void plan(BatchBuffer& buffer, uint64_t epoch, uint64_t number);
  const compute::Batch& load(BatchBuffer& buffer) const;
  // Announces that the samples of this batch will soon be read.
  void will_need(uint64_t epoch, uint64_t number);

 private:
  const Dataset& dataset_;
  const Shards shards_;
  const Augmentation augmentation_;
  std::vector<EpochOrder> orders_;  // order of each held shard
};

}  // namespace muster::data
