#include "trainer/loop/batches/device_threads.h"

#include <utility>

#include "common/error.h"

namespace muster::loop {

DeviceThreads::DeviceThreads(int devices, bool exclusive)
    : team_(devices > 1 ? std::make_unique<host::Team>(devices, exclusive) : nullptr) {}

void DeviceThreads::each(const std::function<void(int)>& work) {
  if (!team_) return work(0);
  team_->run([&](host::TeamThread member) {
    try {
      work(member.index);
    } catch (const DeviceError&) {
      keep(/*of_device=*/true);
    } catch (...) {
      keep(/*of_device=*/false);
    }
  });
  const MutexLock lock(mutex_);
  of_device_ = false;
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

// Keeps the exception being handled if it is the first one. Exceptions that are its consequences
// come later; only a device's error may come after its consequences, because other devices may give
// up before it is thrown.
void DeviceThreads::keep(bool of_device) {
  const MutexLock lock(mutex_);
  if (failure_ && (of_device_ || !of_device)) return;
  failure_ = std::current_exception();
  of_device_ = of_device;
}

}  // namespace muster::loop
