#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "trainer/data/batcher.h"
#include "trainer/data/pipeline.h"
#include "trainer/loop/batches/workload.h"

namespace muster::loop {

// The batches of pieces of work, for one thread. Of data that lie ready in memory a batch points at
// them; others are made ahead by threads of the feed's own (data::Pipeline). Which batches it gives
// is decided by the work alone. Allocates nothing after construction.
class Feed {
 public:
  struct Options {
    bool shuffle = true;
    uint64_t seed = 1;
    // Samples ahead of the one that is trained on; 0: those of four pieces of work.
    int64_t prefetch = 0;
    int accumulation = 1;  // batches of a piece of work
    // Whether work comes as Work::at foresees; else (asynchronous training, where that is a
    // guess) nothing is copied ahead and the system only asked to fetch what may be next.
    bool in_turn = true;
    std::vector<spec::StageKind> augment = {};
    int threads = 1;  // of the feed's own, at most; copies alone are the work of one
  };

  // The data set must outlive it.
  Feed(const data::Dataset& dataset, const data::Shards& shards, const Options& options);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // The i-th batch of `work`; empty beyond the epoch's last. Valid until the next call.
  const compute::Batch& batch(const Work& work, int i = 0);

  // How long batch() has taken since the start. From any thread.
  double waited_seconds() const { return 1e-9 * static_cast<double>(waited_.load(kRelaxed)); }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  const compute::Batch& next(const Work& work, int i);
  uint64_t pieces_ahead(const Work& work) const;

  const Options options_;
  const uint64_t rows_;    // of a batch
  const bool ready_;       // the samples: in memory and used as they are
  data::Batcher batcher_;  // moved to the pipeline where there is one
  data::BatchBuffer buffer_;
  std::unique_ptr<data::Pipeline> pipeline_;  // null: batches from here
  std::atomic<int64_t> waited_{0};            // ns
};

}  // namespace muster::loop
