#include "common/threads/watched_work.h"

#include "common/threads/mutex.h"

namespace muster {

namespace {

thread_local WatchedWork* innermost = nullptr;

std::atomic<uint64_t> next_id{1};

// Nothing here is ever destroyed, because threads may still work while the process ends.
Mutex& list_mutex() {
  static Mutex& mutex = *new Mutex;
  return mutex;
}
WatchedWork* first = nullptr;  // guarded by list_mutex()

}  // namespace

WatchedWork::WatchedWork(Kind kind, const char* doing, std::string_view about)
    : id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      kind_(kind),
      doing_(doing),
      about_(about),
      outer_(innermost) {
  if (outer_ != nullptr) outer_->covered_.store(true, std::memory_order_relaxed);
  innermost = this;
  const MutexLock lock(list_mutex());
  next_ = first;
  if (first != nullptr) first->previous_ = this;
  first = this;
}

WatchedWork::~WatchedWork() {
  {
    const MutexLock lock(list_mutex());
    if (next_ != nullptr) next_->previous_ = previous_;
    (previous_ != nullptr ? previous_->next_ : first) = next_;
  }
  innermost = outer_;
  if (outer_ == nullptr) return;
  beat();
  outer_->covered_.store(false, std::memory_order_relaxed);
}

// Only the work's own thread writes the count.
void WatchedWork::beat() {
  if (innermost == nullptr) return;
  auto& beats = innermost->beats_;
  beats.store(beats.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::vector<WatchedWork::Seen> WatchedWork::all() {
  std::vector<Seen> seen;
  const MutexLock lock(list_mutex());
  for (const WatchedWork* work = first; work != nullptr; work = work->next_) {
    std::string doing = work->doing_;
    if (!work->about_.empty()) doing.append(" ").append(work->about_);
    seen.push_back({work->id_, work->kind_, std::move(doing),
                    work->beats_.load(std::memory_order_relaxed),
                    work->covered_.load(std::memory_order_relaxed)});
  }
  return seen;
}

}  // namespace muster
