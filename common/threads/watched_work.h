#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Work of a thread that must go on: it exists from the work's beginning to its end, and HangWatch
// (common/threads/hang_watch.h) finds work that gives no sign of life (`beat`). Code that waits for
// other processes within it must wake up at least every few seconds and beat; otherwise the wait
// counts as a hang. While a thread has begun further work within, only that is looked at. Work
// costs a lock that nobody else wants, and allocates nothing.
class WatchedWork {
 public:
  enum class Kind {
    computing,
    storage,  // waits for a file system, which may be another machine's
  };

  // One piece of work as it stands now.
  struct Seen {
    uint64_t id = 0;  // of the work: no two have the same
    Kind kind = Kind::computing;
    std::string doing;  // "taking a step", "writing /jobs/mnist/result.json"
    uint64_t beats = 0;
    bool covered = false;  // by further work of the same thread
  };

  // `doing` and `about` are joined in messages; both must outlive the work.
  WatchedWork(Kind kind, const char* doing, std::string_view about = {});
  ~WatchedWork();
  WatchedWork(const WatchedWork&) = delete;
  WatchedWork& operator=(const WatchedWork&) = delete;

  // Says that the calling thread's present work goes on; does nothing without any.
  static void beat();
  // Returns all work of this process that is under way.
  static std::vector<Seen> all();

 private:
  const uint64_t id_;
  const Kind kind_;
  const char* const doing_;
  const std::string_view about_;
  std::atomic<uint64_t> beats_{0};
  std::atomic<bool> covered_{false};  // by further work of the same thread
  WatchedWork* const outer_;
  WatchedWork* next_ = nullptr;
  WatchedWork* previous_ = nullptr;
};

}  // namespace muster
