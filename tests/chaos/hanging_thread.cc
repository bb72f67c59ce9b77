// Loaded into a trainer by LD_PRELOAD: the thread that takes SIGUSR2 hangs for ever, and all other
// threads go on.

#include <signal.h>
#include <time.h>

namespace {

void hang(int) {
  const timespec while_{1, 0};
  for (;;) nanosleep(&while_, nullptr);
}

__attribute__((constructor)) void install() {
  struct sigaction action {};
  action.sa_handler = hang;
  sigaction(SIGUSR2, &action, nullptr);
}

}  // namespace
