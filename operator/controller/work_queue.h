#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/api/training_job.h"

namespace muster::controller {

// Delay before the n-th retry in a row: first, 2 first, 4 first, ... up to longest.
struct BackOff {
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{30'000};
  std::chrono::milliseconds after(int failures) const;
};

// Keys (jobs) that are to be looked at, each at a time of its own. A key is in the queue once
// however often it is added, and is given to one taker at a time: added while taken, it is given
// again after done(). Has no clock and never blocks. Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(BackOff back_off = {}) : back_off_(back_off) {}

  // An earlier time wins over a later one that is known already.
  void add(const std::string& key, api::Time at);
  // The key that is due for longest, or nothing; `since`, where given: since when. done() must
  // follow.
  std::optional<std::string> take(api::Time now, api::Time* since = nullptr);
  void done(const std::string& key);
  // done(), and the key comes again after its back-off.
  void failed(const std::string& key, api::Time now);
  // done(), and the key comes again after the longest back-off, or when it is added.
  void refused(const std::string& key, api::Time now);
  // Ends a row of failures.
  void succeeded(const std::string& key);

  int failures(const std::string& key) const;
  // How many keys are due that nobody has taken.
  int due(api::Time now) const;
  // When the next key is due that nobody has taken.
  std::optional<api::Time> next() const;

 private:
  // All with mutex_.
  void add_locked(const std::string& key, api::Time at);
  void set_due(const std::string& key, api::Time at);
  void drop_due(const std::string& key);
  void release(const std::string& key);

  const BackOff back_off_;
  mutable std::mutex mutex_;
  std::map<std::string, api::Time> due_;
  std::set<std::pair<api::Time, std::string>> order_;  // of due_, what nobody has taken
  std::set<std::string> taken_;
  std::map<std::string, int> failures_;
};

}  // namespace muster::controller
