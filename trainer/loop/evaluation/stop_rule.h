#pragma once

#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "common/document.h"
#include "common/mutex.h"
#include "trainer/loop/synchronizers/synchronizer.h"
#include "trainer/spec/training_spec.h"

namespace muster::loop {

// Returns the value, step and epoch of an evaluation (evaluations/<step>.json) that reaches what
// stopWhen asks for; nothing if it does not.
std::optional<checkpoint::Best> reached_by(const Json& evaluation, const spec::TrainingSpec& spec);

// Ends the training by stopWhen. Rank 0 has one: it decides for all, and its decision is a part of
// the position, so that it is in the final checkpoint. Evaluations within the training are the
// Validator's to look at.
class StopRule {
 public:
  // Precondition: the spec has stop_when. If `storage` is not empty, another process evaluates
  // checkpoints, and from begin() on the results in its evaluations/ are looked at about once a
  // second by a thread of the rule's own. `spec` must outlive the rule.
  StopRule(const spec::TrainingSpec& spec, const std::filesystem::path& storage);

  // To be called when the synchronizer has started: its position may have gone back. Evaluations of
  // later steps that are there by then do not count, because those steps will be made again.
  void begin(const checkpoint::Position& position);
  // Ends the training, between two steps, if what is known by now asks for it. Costs a step a few
  // comparisons.
  void apply(Synchronizer& synchronizer);

 private:
  void watch(std::stop_token stop);
  void look();
  std::vector<std::filesystem::path> evaluations_there() const;
  void warn_without_metric(const Json& evaluation) MUSTER_REQUIRES(mutex_);

  const spec::TrainingSpec& spec_;
  const std::filesystem::path evaluations_;  // empty: nobody else evaluates
  uint64_t epoch_ = 0;                       // up to which the training loss is looked at
  std::atomic<bool> is_reached_{false};
  Mutex mutex_;
  std::set<std::filesystem::path> seen_ MUSTER_GUARDED_BY(mutex_);
  // Evaluations of steps that will be made again, with the time at which each was written.
  std::map<std::filesystem::path, std::filesystem::file_time_type> old_ MUSTER_GUARDED_BY(mutex_);
  bool warned_ MUSTER_GUARDED_BY(mutex_) = false;
  std::optional<checkpoint::Best> reached_ MUSTER_GUARDED_BY(mutex_);
  std::jthread thread_;  // the last member, as it uses all others
};

}  // namespace muster::loop
