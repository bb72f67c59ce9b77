#pragma once

#include <chrono>
#include <cstdint>

#include "common/threads/mutex.h"

namespace muster::checkpoint {

// The speed limit of each file of a checkpoint that is being written. A caller that waits for the
// files lifts the limit. Thread-safe.
class SpeedLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit SpeedLimit(double bytes_per_second = 0) : bytes_per_second_(bytes_per_second) {}

  void set(double bytes_per_second);  // 0: no limit
  void lift() { set(0); }
  // Blocks until the limit allows `bytes` bytes since `begun`.
  void wait(Clock::time_point begun, uint64_t bytes);

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  double bytes_per_second_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::checkpoint
