#include "trainer/loop/batches/device_threads.h"

#include <algorithm>
#include <exception>
#include <vector>

#include "common/error.h"

namespace muster::loop {

namespace {

void rethrow_one(const std::vector<std::exception_ptr>& failures) {
  for (const std::exception_ptr& failure : failures) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const DeviceError&) {
      throw;
    } catch (...) {  // perhaps only because another device has failed
    }
  }
  const auto first = std::ranges::find_if(
      failures, [](const std::exception_ptr& failure) { return failure != nullptr; });
  if (first != failures.end()) std::rethrow_exception(*first);
}

}  // namespace

DeviceThreads::DeviceThreads(int devices, bool exclusive)
    : team_(devices > 1 ? std::make_unique<host::Team>(devices, exclusive) : nullptr) {}

void DeviceThreads::each(const std::function<void(int)>& work) {
  if (!team_) return work(0);
  std::vector<std::exception_ptr> failures(static_cast<size_t>(team_->count()));
  team_->run([&](host::TeamThread member) {
    try {
      work(member.index);
    } catch (...) {
      failures[static_cast<size_t>(member.index)] = std::current_exception();
    }
  });
  rethrow_one(failures);
}

}  // namespace muster::loop
