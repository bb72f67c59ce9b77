#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/threads/mutex.h"

namespace muster::controller {

// A monotonic time: jumps of the wall clock do not change when a key comes.
using Moment = std::chrono::steady_clock::time_point;

// The delay before the n-th retry in a row: first, 2 first, 4 first, ... up to longest.
struct BackOff {
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{30'000};
  std::chrono::milliseconds after(int failures) const;
};

// Keys (jobs) that are to be looked at, each at a time of its own. A key is in the queue once
// however often it is added, and is given to one taker at a time: a key added while it is taken is
// given again after done(). Namespaces ("<namespace>/<name>") take turns: one with thousands of
// keys that are due does not hold up the others. Has no clock and never blocks. Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(BackOff back_off = {}) : back_off_(back_off) {}

  // Adds the key, or moves it forward if `at` is earlier than the time at which it already waits.
  void add(const std::string& key, Moment at);
  // Takes the key that has been due for longest in the namespace whose turn it is, or returns
  // nothing; sets `since`, if given, to the time at which it was due. The caller must call done()
  // after it.
  std::optional<std::string> take(Moment now, Moment* since = nullptr);
  void done(const std::string& key);
  // Does the same as done(), and keeps the key from being taken before `rested`.
  void done(const std::string& key, Moment now, Moment rested);
  // Does the same as done(); the key comes again after its back-off, not sooner.
  void failed(const std::string& key, Moment now);
  // Does the same as done(); the key comes again after the longest back-off, or when it is added.
  void refused(const std::string& key, Moment now);
  // Forgets the key's failures in a row.
  void succeeded(const std::string& key);

  int failures(const std::string& key) const;
  // Returns the number of keys that are due and not taken.
  int due(Moment now) const;
  // Returns when the next key that is not taken is due.
  std::optional<Moment> next() const;

 private:
  void add_locked(const std::string& key, Moment at) MUSTER_REQUIRES(mutex_);
  void set_due(const std::string& key, Moment at) MUSTER_REQUIRES(mutex_);
  void drop_due(const std::string& key) MUSTER_REQUIRES(mutex_);
  void release(const std::string& key) MUSTER_REQUIRES(mutex_);
  void promote(Moment now) MUSTER_REQUIRES(mutex_);

  using Order = std::set<std::pair<Moment, std::string>>;
  const BackOff back_off_;
  mutable Mutex mutex_;
  std::map<std::string, Moment> due_ MUSTER_GUARDED_BY(mutex_);
  // The keys of due_ that nobody has taken: those with a time in the future, and, by namespace,
  // those whose time was over at the last take().
  Order later_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Order> ready_ MUSTER_GUARDED_BY(mutex_);
  std::deque<std::string> turns_ MUSTER_GUARDED_BY(mutex_);  // the namespaces in ready_
  std::set<std::string> taken_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, Moment> resting_ MUSTER_GUARDED_BY(mutex_);
  std::map<std::string, int> failures_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::controller
