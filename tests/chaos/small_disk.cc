#include "tests/chaos/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

namespace muster::chaos {

namespace {

// Root in a user namespace of our own, if we are not root already.
bool enter_namespace() {
  static const bool entered = [] {
    const uid_t user = getuid();
    const gid_t group = getgid();
    if (user == 0 && unshare(CLONE_NEWNS) == 0) return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    std::ofstream("/proc/self/setgroups") << "deny";
    std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
    std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
    return true;
  }();
  static const bool own =
      entered && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return own;
}

}  // namespace

SmallDisk::SmallDisk(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  mounted_ = enter_namespace() && mount("muster", folder_.c_str(), "tmpfs", 0, "size=8m") == 0;
}

SmallDisk::~SmallDisk() {
  if (mounted_) umount2(folder_.c_str(), MNT_DETACH);
}

void SmallDisk::fill() {
  const int file = open((folder_ / "ballast").c_str(), O_WRONLY | O_CREAT, 0666);
  const std::vector<char> bytes(4096);
  while (write(file, bytes.data(), bytes.size()) > 0) continue;
  close(file);
}

void SmallDisk::make_room() {
  std::filesystem::remove(folder_ / "ballast");
}

}  // namespace muster::chaos
