#pragma once

#include <functional>
#include <string>

namespace muster::compute {

// Devices that exchange gradients without the host's memory, as one of their processes sees them.
// Each process has devices with consecutive numbers.
struct LinkedDevices {
  int count = 1;  // number of devices in all processes
  int first = 0;  // number of this process's first device
  // All processes have the same id. One of them gets it from EngineGroup::make_link_id().
  std::string id;
  // The thread of each device calls this function again and again while the device waits for
  // others, so the function must be quick. An error that it throws ends the wait.
  std::function<void()> watch = [] {};
};

}  // namespace muster::compute
