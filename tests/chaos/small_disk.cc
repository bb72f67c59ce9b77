#include "tests/chaos/small_disk.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <vector>

#include "tests/chaos/namespaces.h"

namespace muster::chaos {

SmallDisk::SmallDisk(std::filesystem::path folder) : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  mounted_ = enter_own_mounts() && mount("muster", folder_.c_str(), "tmpfs", 0, "size=8m") == 0;
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
