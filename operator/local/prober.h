#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "common/document.h"

namespace muster::local {

// Asks replicas over HTTP, on a thread of its own, whether they are ready and how far they have
// come. Never in the way of anybody: each answer is awaited for a short while only, and nothing
// waits for it.
class Prober {
 public:
  // `on_ready` is called on the prober's thread when a replica has become ready.
  explicit Prober(std::function<void()> on_ready);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Begins to ask http://address/healthz, until it answers; then, where `progress`, /progress four
  // times a second. `uid` tells one attempt from the next.
  void watch(const std::string& uid, const std::string& address, bool progress);
  void forget(const std::string& uid);

  bool is_ready(const std::string& uid) const;
  // The newest answer of the replica watched with `progress`; null before the first.
  Json progress() const;

 private:
  struct Target {
    std::string address;
    bool progress;
  };

  void run();
  void ask(const std::string& uid, const Target& target);

  const std::function<void()> on_ready_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, Target> targets_;
  std::set<std::string> ready_;
  Json progress_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace muster::local
