#include "trainer/loop/batches/device_threads.h"

#include <algorithm>

namespace muster::loop {

DeviceThreads::DeviceThreads(int devices, bool exclusive)
    : team_(devices > 1 ? std::make_unique<host::Team>(devices, exclusive) : nullptr),
      failures_(static_cast<size_t>(devices)) {}

void DeviceThreads::each(const std::function<void(int)>& work) {
  if (!team_) return work(0);
  std::ranges::fill(failures_, nullptr);
  team_->run([&](host::TeamThread member) {
    try {
      work(member.index);
    } catch (...) {
      failures_[static_cast<size_t>(member.index)] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures_)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace muster::loop
