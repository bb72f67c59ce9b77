#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/host/team.h"

namespace muster::loop {

// A thread for each device of a process. The caller's thread is that of the first.
class DeviceThreads {
 public:
  // `exclusive`: see Team.
  DeviceThreads(int devices, bool exclusive);

  // Runs work(device) for each device, on that device's thread. Throws what the first of those that
  // failed has thrown, once all have returned.
  void each(const std::function<void(int)>& work);

 private:
  std::unique_ptr<host::Team> team_;          // null with one device
  std::vector<std::exception_ptr> failures_;  // of each device
};

}  // namespace muster::loop
