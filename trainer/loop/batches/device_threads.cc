#include "trainer/loop/batches/device_threads.h"

#include <utility>

namespace muster::loop {

DeviceThreads::DeviceThreads(int devices, bool exclusive)
    : team_(devices > 1 ? std::make_unique<host::Team>(devices, exclusive) : nullptr) {}

void DeviceThreads::each(const std::function<void(int)>& work) {
  if (!team_) return work(0);
  failed_ = false;
  team_->run([&](host::TeamThread member) {
    try {
      work(member.index);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  });
  if (failed_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

}  // namespace muster::loop
