#pragma once

#include <exception>
#include <functional>
#include <memory>

#include "common/threads/mutex.h"
#include "trainer/host/team.h"

namespace muster::loop {

// A thread for each device of a process. The caller's thread is the thread of the first device.
class DeviceThreads {
 public:
  // `exclusive`: see Team.
  DeviceThreads(int devices, bool exclusive);

  // Runs work(device) for each device, on that device's thread. Once all have returned, throws the
  // first DeviceError or, if there was none, the first exception.
  void each(const std::function<void(int)>& work);

 private:
  void keep(bool of_device);

  std::unique_ptr<host::Team> team_;  // null with one device
  Mutex mutex_;
  std::exception_ptr failure_ MUSTER_GUARDED_BY(mutex_);
  bool of_device_ MUSTER_GUARDED_BY(mutex_) = false;  // failure_ is a DeviceError
};

}  // namespace muster::loop
