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

// Gives one thread the batches of its work. If the samples are ready in memory, a batch points at
// them; otherwise the feed's threads (data::Pipeline) make the batches ahead. Only the work decides
// which batches are returned. Allocates nothing after construction.
class Feed {
 public:
  struct Options {
    bool shuffle = true;
    uint64_t seed = 1;
    // The number of samples to prepare ahead; 0: the samples of four pieces of work.
    int64_t prefetch = 0;
    int accumulation = 1;  // batches in a piece of work
    // Whether work comes in the order that Work::at predicts. If not (in asynchronous training the
    // order is a guess), no batch is made ahead: the system is only asked to fetch the samples that
    // may be next, and the threads make the samples of a batch together when the batch is
    // requested.
    bool in_turn = true;
    std::vector<spec::StageKind> augment = {};
    int threads = 1;  // most threads of the feed; for copies alone it uses one
  };

  // The data set must outlive the feed.
  Feed(const data::Dataset& dataset, const data::Shards& shards, const Options& options);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Lets the engine copy the next batch while it computes with the current one, if the next batch
  // is known. The engine must outlive the feed, and must not compute after the feed has ended.
  void connect(compute::Engine& engine);

  // Returns the i-th batch of `work`; it is empty beyond the end of the epoch. The batch is valid
  // until the next call, or until the connected engine works on it.
  const compute::Batch& batch(const Work& work, int i = 0);

  // Returns the total time spent in batch(). Thread-safe.
  double waited_seconds() const { return 1e-9 * static_cast<double>(waited_.load(kRelaxed)); }

 private:
  static constexpr auto kRelaxed = std::memory_order_relaxed;

  const compute::Batch& next(const data::Cursor& at, const Work& work);
  const compute::Batch* ahead();
  uint64_t pieces_ahead(const Work& work) const;

  const Options options_;
  const data::Dataset& dataset_;
  const uint64_t rows_;        // rows of a batch
  const data::Effort effort_;  // what getting a sample takes, with its stages
  const uint64_t batches_per_epoch_;
  data::Batcher batcher_;  // moved to the pipeline if there is one
  data::BatchBuffer buffer_;
  std::unique_ptr<data::Pipeline> pipeline_;  // null: batches are made without it
  std::atomic<int64_t> waited_{0};            // ns
  std::optional<data::Cursor> given_;         // cursor of the last batch
  const compute::Batch* ahead_ = nullptr;     // the batch after it, if it is ready
  compute::Engine* engine_ = nullptr;         // the connected engine
  // The memory that engines read; the last member, so that it ends first.
  std::vector<std::shared_ptr<void>> served_;
};

}  // namespace muster::loop
