#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "common/documents/document.h"
#include "common/threads/mutex.h"

namespace muster::local {

// Asks replicas over HTTP, on a thread of its own, whether they are ready and how far they have
// come. Asking delays nothing else: the prober waits only a short time for each answer, and no
// other thread waits for the prober.
class Prober {
 public:
  // `on_ready` is called on the prober's thread when a replica has become ready.
  explicit Prober(std::function<void()> on_ready);
  ~Prober();
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  // Begins to ask http://address/healthz: four times a second until an answer comes, then every few
  // seconds, to notice a replica that stops answering. With `progress`, asks /progress four times a
  // second after the first answer. `uid` distinguishes the attempts of a replica.
  void watch(const std::string& uid, const std::string& address, bool progress);
  void forget(const std::string& uid);

  bool is_ready(const std::string& uid) const;
  // Returns the time since a ready replica stopped answering; 0 for any other replica.
  std::chrono::steady_clock::duration silence(const std::string& uid) const;
  // Returns the newest answer of the replica watched with `progress`; null before the first.
  Json progress() const;
  // Returns the time since that answer.
  std::chrono::steady_clock::duration age() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Target {
    std::string address;
    bool progress = false;
    bool ready = false;
    Clock::time_point ask_again;
    // The time of the first question without an answer.
    std::optional<Clock::time_point> silent_since;
  };

  void run();
  void ask(const std::string& uid, const Target& target);
  bool note_answer(const std::string& uid, Clock::time_point asked, bool answered);

  const std::function<void()> on_ready_;
  mutable Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::string, Target> targets_ MUSTER_GUARDED_BY(mutex_);
  Json progress_ MUSTER_GUARDED_BY(mutex_);
  Clock::time_point answered_ MUSTER_GUARDED_BY(mutex_);
  bool stop_ MUSTER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace muster::local
