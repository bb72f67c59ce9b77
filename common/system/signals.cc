#include "common/system/signals.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace muster {

Descriptor watch_signals(std::initializer_list<int> numbers) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : numbers) sigaddset(&set, number);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return Descriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

void survive_large_writes() {
  ::signal(SIGXFSZ, SIG_IGN);
}

std::optional<int> read_signal(const Descriptor& signals) {
  signalfd_siginfo info{};
  if (::read(signals.get(), &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace muster
