#include "common/threads/background.h"

#include <sys/resource.h>

namespace muster {

void give_way() {
  // A tenth of the weight of others. Any less, and on a machine that is busy with other things each
  // waking up takes seconds.
  constexpr int kNicer = 10;
  // 0 means the thread on Linux, not the process. If the call fails, the thread is only less
  // polite.
  (void)::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer);
}

}  // namespace muster
