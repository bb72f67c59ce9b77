#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <stop_token>

#include "trainer/ps/messages.h"

namespace muster::ps {

// Wakes a member that waits for several links at once.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  // Until `ready`, `stop` or `most`; true if ready. `ready` is called under the bell's lock.
  template <class Ready>
  bool wait(std::stop_token stop, std::chrono::milliseconds most, Ready ready) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, stop, most, ready);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any changed_;
};

// A member's way to one shard, whatever carries it. One request at a time.
class ShardLink {
 public:
  enum class State { idle, waiting, answered, broken };

  virtual ~ShardLink() = default;

  // Sends a push (or pull: `gradients` empty) and begins to wait for its reply, whose parameters
  // are written to `parameters` while waiting. The spans must live until then or until the link is
  // gone.
  virtual void send(const PushHeader& header, std::span<const float> gradients,
                    std::span<float> parameters) = 0;
  virtual State state() const = 0;
  // Of the last request; state() is answered.
  virtual ReplyHeader reply() const = 0;
};

}  // namespace muster::ps
