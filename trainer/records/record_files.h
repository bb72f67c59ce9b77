#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/threads/mutex.h"
#include "trainer/records/record_file.h"

namespace muster::records {

// The record files of a data set. Those that were used last stay open. Thread-safe.
class RecordFiles {
 public:
  static constexpr size_t kMostOpen = 64;

  explicit RecordFiles(std::vector<std::filesystem::path> paths) : paths_(std::move(paths)) {}

  const std::filesystem::path& path(size_t file) const { return paths_[file]; }
  // Returns the open file, which stays open as long as the caller has it. Throws the errors of
  // InputFile if it must be opened.
  std::shared_ptr<const RecordFile> open(size_t file) const;

 private:
  using Open = std::pair<size_t, std::shared_ptr<const RecordFile>>;

  const std::vector<std::filesystem::path> paths_;
  mutable Mutex mutex_;
  mutable std::vector<Open> open_ MUSTER_GUARDED_BY(mutex_);  // the one that was used last is last
};

}  // namespace muster::records
