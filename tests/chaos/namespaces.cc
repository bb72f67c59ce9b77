#include "tests/chaos/namespaces.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "common/system/descriptor.h"

namespace muster::chaos {

namespace {

bool enter(int what) {
  const uid_t user = getuid();
  const gid_t group = getgid();
  if (user == 0 && unshare(what) == 0) return true;
  if (unshare(CLONE_NEWUSER | what) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return true;
}

}  // namespace

bool enter_own_network() {
  if (!enter(CLONE_NEWNET)) return false;
  const Descriptor any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq loopback{};
  std::strncpy(loopback.ifr_name, "lo", sizeof loopback.ifr_name - 1);
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  return ::ioctl(any.get(), SIOCSIFFLAGS, &loopback) == 0;
}

bool enter_own_mounts() {
  static const bool entered =
      enter(CLONE_NEWNS) && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return entered;
}

}  // namespace muster::chaos
