#include "common/background.h"

#include <sys/resource.h>

namespace muster {

void give_way() {
  constexpr int kLeast = 19;
  // On Linux 0 is the thread, not the process. Where it fails we are only less polite.
  (void)::setpriority(PRIO_PROCESS, 0, kLeast);
}

}  // namespace muster
