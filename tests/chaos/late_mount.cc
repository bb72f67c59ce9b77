#include "tests/chaos/late_mount.h"

#include <sys/mount.h>
#include <sys/stat.h>

#include <string>

#include "tests/chaos/namespaces.h"

namespace muster::chaos {

namespace fs = std::filesystem;

namespace {

dev_t device_of(const fs::path& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 ? found.st_dev : 0;
}

}  // namespace

LateMount::LateMount(const fs::path& folder, fs::path at, std::chrono::seconds late)
    : at_(std::move(at)) {
  fs::create_directories(at_);
  if (!enter_own_mounts()) return;
  const dev_t before = device_of(at_);
  server_ = std::make_unique<integration::Process>(
      std::vector<std::string>{MUSTER_LATE_STORAGE, folder, at_, std::to_string(late.count())},
      std::map<std::string, std::string>{}, at_.string() + ".log", integration::Process::Limits{});
  mounted_ =
      integration::eventually([&] { return device_of(at_) != before || !server_->running(); }) &&
      server_->running();
}

LateMount::~LateMount() {
  if (mounted_) umount2(at_.c_str(), MNT_DETACH);
}

}  // namespace muster::chaos
