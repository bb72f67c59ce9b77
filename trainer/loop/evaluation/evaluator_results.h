#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "common/documents/document.h"
#include "common/threads/mutex.h"
#include "trainer/checkpoint/files/manifest.h"

namespace muster::loop {

// Tells rank 0 about the results in evaluations/<step>.json of an evaluator that runs beside the
// training. A thread looks for new files about once a second.
class EvaluatorResults {
 public:
  explicit EvaluatorResults(const std::filesystem::path& storage)
      : folder_(storage / "evaluations") {}

  // Call this when the synchronizer has started, because its position may have gone back. From here
  // on, results are those of steps after position.evaluations.step. Existing files of steps after
  // position.step do not count until they are written again, because these steps will be repeated.
  // Other existing files are read at once.
  void begin(const checkpoint::Position& position);
  // Whether take() has something to return. Costs almost nothing.
  bool has_news() const { return has_news_.load(std::memory_order_acquire); }
  // Looks for new results at once, in the caller's thread.
  void look();
  // Returns the evaluations that were found since the last call, in the order of their steps.
  std::vector<Json> take();

 private:
  void watch(std::stop_token stop);
  std::vector<std::filesystem::path> files() const;

  const std::filesystem::path folder_;
  std::atomic<bool> has_news_{false};
  Mutex mutex_;
  uint64_t beginnings_ MUSTER_GUARDED_BY(mutex_) = 0;
  std::set<std::filesystem::path> seen_ MUSTER_GUARDED_BY(mutex_);
  // Evaluations of steps that will be made again, with the time at which each was written.
  std::map<std::filesystem::path, std::filesystem::file_time_type> old_ MUSTER_GUARDED_BY(mutex_);
  std::map<uint64_t, Json> found_ MUSTER_GUARDED_BY(mutex_);  // by step
  std::jthread thread_;  // the last member, because it uses all others
};

}  // namespace muster::loop
