#include "trainer/records/record_files.h"

#include <algorithm>

namespace muster::records {

std::shared_ptr<const RecordFile> RecordFiles::open(size_t file) const {
  {
    const MutexLock lock(mutex_);
    const auto found = std::ranges::find(open_, file, &Open::first);
    if (found != open_.end()) {
      std::rotate(found, found + 1, open_.end());
      return open_.back().second;
    }
  }
  // Opening may wait for the storage, so other threads may use other files meanwhile.
  auto opened = std::make_shared<const RecordFile>(paths_[file]);
  const MutexLock lock(mutex_);
  if (open_.size() == kMostOpen) open_.erase(open_.begin());
  open_.emplace_back(file, opened);
  return opened;
}

}  // namespace muster::records
