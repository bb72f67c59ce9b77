#include "trainer/loop/evaluation/evaluator_results.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/documents/json_file.h"
#include "common/error.h"
#include "common/system/file.h"
#include "common/text/whole_number.h"
#include "common/threads/pause.h"

namespace muster::loop {

namespace {

constexpr std::chrono::milliseconds kLookForResults{1000};

// Returns the step of evaluations/<step>.json; 0 for a file of another name.
uint64_t step_of(const std::filesystem::path& file) {
  return whole_number<uint64_t>(file.stem().string()).value_or(0);
}

// Returns a time before all others if the file is gone.
std::filesystem::file_time_type written_at(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::last_write_time(file, error);
}

}  // namespace

void EvaluatorResults::begin(const checkpoint::Position& position) {
  {
    const auto there = files();
    const MutexLock lock(mutex_);
    ++beginnings_;
    seen_.clear();
    found_.clear();
    has_news_ = false;
    for (const auto& file : there) {
      const uint64_t step = step_of(file);
      if (step <= position.evaluations.step) seen_.insert(file);
      if (step > position.step) old_[file] = written_at(file);
    }
  }
  look();
  if (!thread_.joinable()) thread_ = std::jthread([this](std::stop_token stop) { watch(stop); });
}

std::vector<Json> EvaluatorResults::take() {
  const MutexLock lock(mutex_);
  has_news_ = false;
  std::vector<Json> results;
  for (auto& [step, evaluation] : std::exchange(found_, {}))
    results.push_back(std::move(evaluation));
  return results;
}

void EvaluatorResults::watch(std::stop_token stop) {
  while (!stop.stop_requested()) {
    look();
    pause_for(kLookForResults, stop);
  }
}

std::vector<std::filesystem::path> EvaluatorResults::files() const {
  std::vector<std::filesystem::path> files;
  try {
    for (const std::string& name : names_in(folder_)) {
      std::filesystem::path file = folder_ / name;
      if (file.extension() == ".json" && step_of(file) > 0) files.push_back(std::move(file));
    }
  } catch (const Unavailable&) {  // look again another time
  }
  return files;
}

// A file that cannot be read now is read the next time. No file is read while the mutex is held,
// because the training must not wait for storage that hangs.
void EvaluatorResults::look() {
  const auto there = files();
  std::map<std::filesystem::path, std::optional<std::filesystem::file_time_type>> unread;
  uint64_t beginnings = 0;
  {
    const MutexLock lock(mutex_);
    beginnings = beginnings_;
    for (const auto& file : there) {
      const auto old = old_.find(file);
      if (!seen_.contains(file))
        unread[file] = old == old_.end() ? std::nullopt : std::optional(old->second);
    }
  }
  std::map<std::filesystem::path, Json> evaluations;
  for (const auto& [file, old] : unread) {
    if (old && *old == written_at(file)) continue;
    Json evaluation = read_json_or_null(file);
    if (!evaluation.is_null()) evaluations[file] = std::move(evaluation);
  }
  const MutexLock lock(mutex_);
  if (beginnings != beginnings_) return;  // begin() was called meanwhile
  for (auto& [file, evaluation] : evaluations) {
    seen_.insert(file);
    found_[step_of(file)] = std::move(evaluation);
  }
  has_news_.store(!found_.empty(), std::memory_order_release);
}

}  // namespace muster::loop
