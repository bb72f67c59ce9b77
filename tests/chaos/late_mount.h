#pragma once

#include <chrono>
#include <filesystem>
#include <memory>

#include "tests/integration/trainer/process.h"

namespace muster::chaos {

// A folder as another host sees it that asks its file server anew only after `late`
// (late_storage.cc), mounted in a mount namespace of this program's own. Where FUSE or namespaces
// are not allowed, mounted() is false.
class LateMount {
 public:
  LateMount(const std::filesystem::path& folder, std::filesystem::path at,
            std::chrono::seconds late);
  ~LateMount();
  LateMount(const LateMount&) = delete;
  LateMount& operator=(const LateMount&) = delete;

  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return at_; }

 private:
  const std::filesystem::path at_;
  std::unique_ptr<integration::Process> server_;
  bool mounted_ = false;
};

}  // namespace muster::chaos
