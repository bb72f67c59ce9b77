#pragma once

#include "trainer/data/dataset.h"

namespace muster::loop {

// The batches of the training data by number. Allocates nothing after construction.
class Feed {
 public:
  Feed(const data::Dataset& dataset, bool shuffle, uint64_t seed, int64_t batch_size,
       uint64_t batches_per_epoch)
      : order_(dataset.size(), shuffle, seed),
        batcher_(dataset, order_, batch_size),
        batch_size_(batch_size),
        batches_per_epoch_(batches_per_epoch) {}
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Batch `number` of `epoch`; empty beyond the epoch's last.
  const compute::Batch& batch(uint64_t epoch, uint64_t number) {
    const uint64_t begin = number * static_cast<uint64_t>(batch_size_);
    return batcher_.fill(epoch, begin, number < batches_per_epoch_ ? batch_size_ : 0);
  }

 private:
  data::EpochOrder order_;
  data::Batcher batcher_;
  const int64_t batch_size_;
  const uint64_t batches_per_epoch_;
};

}  // namespace muster::loop
