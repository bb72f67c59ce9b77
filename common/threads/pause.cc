#include "common/threads/pause.h"

#include <algorithm>
#include <cstdint>

#include "common/threads/mutex.h"

namespace muster {

bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  Mutex mutex;
  MutexLock lock(mutex);
  StoppableConditionVariable never;
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

int milliseconds_until(std::chrono::steady_clock::time_point then) {
  const auto left = then - std::chrono::steady_clock::now();
  return static_cast<int>(
      std::max<int64_t>(0, std::chrono::ceil<std::chrono::milliseconds>(left).count()));
}

}  // namespace muster
