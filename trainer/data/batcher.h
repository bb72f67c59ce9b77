#pragma once

#include <cstdint>
#include <vector>

#include "trainer/compute/engine.h"
#include "trainer/data/augmentation.h"
#include "trainer/data/dataset.h"
#include "trainer/data/shards.h"
#include "trainer/data/storage.h"

namespace muster::data {

// One epoch's order: a permutation of [0, size) that is a function of (seed, epoch) only, the same
// on every platform, or the identity without shuffling. Not thread-safe. 4 bytes a sample.
class EpochOrder {
 public:
  // Throws Invalid for 2^32 samples or more.
  EpochOrder(uint64_t size, bool shuffle, uint64_t seed);
  // Sample at `position` < size() of `epoch`. Keeps the last epoch's permutation.
  uint64_t at(uint64_t epoch, uint64_t position);
  uint64_t size() const { return size_; }

 private:
  void build(uint64_t epoch);
  uint64_t size_;
  bool shuffle_;
  uint64_t seed_;
  uint64_t epoch_ = ~uint64_t{0};
  std::vector<uint32_t> order_;
};

// The seed of the order of one of several shards; of the first, the seed itself.
uint64_t shard_seed(uint64_t seed, size_t shard);

// A compute::Batch and what it points at, allocated once.
class BatchBuffer {
 public:
  enum class Features {
    in_place,  // where the data set has them
    copied,    // in the buffer itself
  };
  BatchBuffer(const Dataset& dataset, int64_t most_rows, Features features = Features::in_place);
  BatchBuffer(BatchBuffer&&) = default;

  const compute::Batch& batch() const { return batch_; }

 private:
  friend class Batcher;
  void plan(size_t row, uint64_t sample, uint64_t position);
  void finish(uint64_t epoch, size_t rows);
  void load(const Augmentation& augmentation);

  const Dataset& dataset_;
  const uint64_t sample_bytes_;
  Storage copies_;    // empty: features in place
  Sample workspace_;  // of the stages
  std::vector<uint64_t> samples_;
  std::vector<const void*> features_;
  std::vector<int32_t> labels_;
  std::vector<const float*> targets_;
  std::vector<uint64_t> positions_;
  compute::Batch batch_;
};

// The batches of a data set's epochs, by number. Not thread-safe. Allocates nothing after
// construction.
class Batcher {
 public:
  // The data set must outlive it. With stages its buffers must hold the features.
  Batcher(const Dataset& dataset, Shards shards, bool shuffle, uint64_t seed,
          std::vector<spec::StageKind> stages = {});
  // All samples as they come.
  Batcher(const Dataset& dataset, int64_t rows);

  const Shards& shards() const { return shards_; }
  const Dataset& dataset() const { return dataset_; }
  // Batch `number` of `epoch`; no rows beyond the epoch's end. positions: through all batches of
  // the epoch, the same whoever fills them. Throws as Shards::place does.
  const compute::Batch& fill(BatchBuffer& buffer, uint64_t epoch, uint64_t number) {
    plan(buffer, epoch, number);
    return load(buffer);
  }
  // fill() in two parts: which samples, and then the samples themselves, which other threads may do
  // meanwhile with other buffers. What a disk must give first is asked for before any is read.
  void plan(BatchBuffer& buffer, uint64_t epoch, uint64_t number);
  const compute::Batch& load(BatchBuffer& buffer) const;
  // Its samples are soon wanted.
  void will_need(uint64_t epoch, uint64_t number);

 private:
  const Dataset& dataset_;
  const Shards shards_;
  const Augmentation augmentation_;
  std::vector<EpochOrder> orders_;  // of each shard that is held
};

}  // namespace muster::data
