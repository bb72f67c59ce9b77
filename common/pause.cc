#include "common/pause.h"

#include "common/mutex.h"

namespace muster {

bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  Mutex mutex;
  MutexLock lock(mutex);
  StoppableConditionVariable never;
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace muster
