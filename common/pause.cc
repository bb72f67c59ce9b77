#include "common/pause.h"

#include <condition_variable>
#include <mutex>

namespace muster {

bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any never;
  never.wait_for(lock, stop, time, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace muster
