#pragma once

#include <filesystem>

namespace muster::chaos {

// A disk of a few MB over a folder (a tmpfs, in a mount namespace of this program's own) that can
// be filled. Where namespaces are not allowed, mounted() is false.
class SmallDisk {
 public:
  explicit SmallDisk(std::filesystem::path folder);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  void fill();
  void make_room();

 private:
  const std::filesystem::path folder_;
  bool mounted_ = false;
};

}  // namespace muster::chaos
