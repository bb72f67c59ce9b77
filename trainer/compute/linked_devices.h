#pragma once

#include <functional>
#include <string>

namespace muster::compute {

// Devices that exchange gradients without the host's memory, as one of their processes sees them.
// Each process has a run of consecutive ones.
struct LinkedDevices {
  int count = 1;   // of all processes
  int first = 0;   // this process's first one
  std::string id;  // the same for all processes: from EngineGroup::make_link_id() of one of them
  // The thread of each device calls it again and again while the device waits for others, so it
  // must be quick. What it throws ends the wait.
  std::function<void()> watch = [] {};
};

}  // namespace muster::compute
