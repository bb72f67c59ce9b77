#pragma once

#include <functional>
#include <memory>

#include "trainer/host/team.h"

namespace muster::loop {

// A thread for each device of a process. The caller's thread is that of the first.
class DeviceThreads {
 public:
  // `exclusive`: see Team.
  DeviceThreads(int devices, bool exclusive);

  // Runs work(device) for each device, on that device's thread. Once all have returned, it throws
  // a DeviceError that one has thrown, or else what the first of those that failed has thrown.
  void each(const std::function<void(int)>& work);

 private:
  std::unique_ptr<host::Team> team_;  // null with one device
};

}  // namespace muster::loop
