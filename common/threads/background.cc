#include "common/threads/background.h"

#include <sys/resource.h>

namespace muster {

void give_way() {
  // A tenth of the weight of other threads. With less weight each wake-up would take seconds on a
  // busy machine.
  constexpr int kNicer = 10;
  // 0 means the thread on Linux, not the process. If the call fails, the thread only keeps its
  // priority.
  (void)::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer);
}

}  // namespace muster
