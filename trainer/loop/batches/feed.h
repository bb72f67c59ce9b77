#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "trainer/data/batches/batcher.h"
#include "trainer/data/batches/pipeline.h"
#include "trainer/loop/batches/workload.h"

namespace muster::loop {

// Gives one thread the batches of its pieces of work. If the data lie ready in memory, a batch
// points at them; otherwise threads of the feed's own (data::Pipeline) make the batches ahead. The
// work alone decides which batches it gives. Allocates nothing after construction.
class Feed {
 public:
  struct Options {
    bool shuffle = true;
    uint64_t seed = 1;
    // The number of samples to prepare ahead; 0: those of four pieces of work.
    int64_t prefetch = 0;
    int accumulation = 1;  // batches of a piece of work
    // Whether work comes in the order that Work::at foresees. If not (asynchronous training, where
    // that order is a guess), nothing is made ahead: the system is only asked to fetch what may be
    // next, and the threads make the samples of one batch together when it is asked for.
    bool in_turn = true;
    std::vector<spec::StageKind> augment = {};
    int threads = 1;  // of the feed's own, at most; copies alone are the work of one
  };

  // The data set must outlive it.
  Feed(const data::Dataset& dataset, const data::Shards& shards, const Options& options);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Lets the engine copy a batch while it computes with the one before, where that is known. The
  // engine must live longer, and must not compute once this has ended.
  void connect(compute::Engine& engine);

  // Returns the i-th batch of `work`; empty beyond the epoch's last. Valid until the next call, or
  // until the connected engine works on it.
  const compute::Batch& batch(const Work& work, int i = 0);

  // Returns the total time spent in batch(). May be called from any thread.
  double waited_seconds() const { return 1e-9 * static_cast<double>(waited_.load(kRelaxed)); }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  const compute::Batch& next(const data::Cursor& at, const Work& work);
  const compute::Batch* ahead();
  uint64_t pieces_ahead(const Work& work) const;

  const Options options_;
  const data::Dataset& dataset_;
  const uint64_t rows_;  // of a batch
  const bool ready_;     // the samples are in memory as they are used
  const uint64_t batches_per_epoch_;
  data::Batcher batcher_;  // moved to the pipeline if there is one
  data::BatchBuffer buffer_;
  std::unique_ptr<data::Pipeline> pipeline_;   // null: batches are made without it
  std::atomic<int64_t> waited_{0};             // ns
  std::optional<data::Cursor> given_;          // of the last batch
  const compute::Batch* ahead_ = nullptr;      // the one after it, if it is made already
  compute::Engine* engine_ = nullptr;          // that is connected
  std::vector<std::shared_ptr<void>> served_;  // what engines read; last: it ends first
};

}  // namespace muster::loop
