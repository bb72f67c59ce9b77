#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

// Work of a thread that must make progress. The object exists from the beginning of the work to its
// end, and HangWatch (common/threads/hang_watch.h) finds work without a sign of life (`beat`). If
// the work waits for other processes, it must wake up at least every few seconds and call beat();
// otherwise the wait counts as a hang. While a thread has begun inner work, only the inner work is
// watched. An object costs one uncontended lock, and allocates nothing.
class WatchedWork {
 public:
  enum class Kind {
    computing,
    storage,  // waits for a file system, which may be another machine's
  };

  // One piece of work as it stands now.
  struct Seen {
    uint64_t id = 0;  // unique number of the work
    Kind kind = Kind::computing;
    std::string doing;  // "taking a step", "writing /jobs/mnist/result.json"
    uint64_t beats = 0;
    bool covered = false;  // whether the same thread has begun inner work
  };

  // `doing` and `about` are joined in messages; both must outlive the work.
  WatchedWork(Kind kind, const char* doing, std::string_view about = {});
  ~WatchedWork();
  WatchedWork(const WatchedWork&) = delete;
  WatchedWork& operator=(const WatchedWork&) = delete;

  // Gives a sign of life of the calling thread's innermost work; does nothing without work.
  static void beat();
  // Returns all work of this process that is under way.
  static std::vector<Seen> all();

 private:
  const uint64_t id_;
  const Kind kind_;
  const char* const doing_;
  const std::string_view about_;
  std::atomic<uint64_t> beats_{0};
  std::atomic<bool> covered_{false};  // whether the same thread has begun inner work
  WatchedWork* const outer_;
  WatchedWork* next_ = nullptr;
  WatchedWork* previous_ = nullptr;
};

}  // namespace muster
