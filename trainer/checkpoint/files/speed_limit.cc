#include "trainer/checkpoint/files/speed_limit.h"

#include <algorithm>

namespace muster::checkpoint {

namespace {
constexpr double kLongest = 24 * 3600;  // seconds: a clock cannot count for ever
}  // namespace

void SpeedLimit::set(double bytes_per_second) {
  const MutexLock lock(mutex_);
  bytes_per_second_ = bytes_per_second;
  changed_.notify_all();
}

void SpeedLimit::wait(Clock::time_point begun, uint64_t bytes) {
  MutexLock lock(mutex_);
  if (bytes_per_second_ <= 0) return;
  const std::chrono::duration<double> seconds(
      std::min(static_cast<double>(bytes) / bytes_per_second_, kLongest));
  changed_.wait_until(lock, begun + std::chrono::duration_cast<Clock::duration>(seconds),
                      [&]() MUSTER_REQUIRES(mutex_) { return bytes_per_second_ <= 0; });
}

}  // namespace muster::checkpoint
