#pragma once

#include <algorithm>

#include "trainer/data/dataset.h"
#include "trainer/loop/workload.h"

namespace muster::loop {

// The batches of pieces of work. Allocates nothing after construction.
class Feed {
 public:
  // `prefetch`: how many samples ahead of the one that is trained on those are asked for that may
  // lie on a disk; 0: those of four pieces of work.
  Feed(const data::Dataset& dataset, const spec::DataSource& source, uint64_t seed,
       int64_t batch_size, uint64_t batches_per_epoch)
      : order_(dataset.size(), source.shuffle, seed),
        batcher_(dataset, order_, batch_size),
        prefetch_(static_cast<uint64_t>(source.prefetch)),
        batch_size_(static_cast<uint64_t>(batch_size)),
        batches_per_epoch_(batches_per_epoch) {}
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // The i-th batch of `work`; empty beyond the epoch's last.
  const compute::Batch& batch(const Work& work, int i = 0) {
    const uint64_t number = work.first_batch + static_cast<uint64_t>(i);
    const uint64_t later = number + pieces_ahead(work) * (work.following - work.first_batch);
    batcher_.prefetch(work.epoch, begin(later), rows(later));
    return batcher_.fill(work.epoch, begin(number), rows(number));
  }

 private:
  uint64_t pieces_ahead(const Work& work) const {
    if (prefetch_ == 0) return 4;
    const uint64_t samples = static_cast<uint64_t>(work.batches) * batch_size_;
    return (prefetch_ + samples - 1) / samples;
  }
  uint64_t begin(uint64_t number) const { return number * batch_size_; }
  int64_t rows(uint64_t number) const {
    return number < batches_per_epoch_ ? static_cast<int64_t>(batch_size_) : 0;
  }

  data::EpochOrder order_;
  data::Batcher batcher_;
  const uint64_t prefetch_;
  const uint64_t batch_size_;
  const uint64_t batches_per_epoch_;
};

}  // namespace muster::loop
