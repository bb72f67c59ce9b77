#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

namespace muster::folder {

// For a loop that waits for what another host writes: without it, a client of a file server may
// tell of it a minute late (look_anew() in common/file.h). Not thread-safe.
class FreshView {
 public:
  explicit FreshView(std::vector<std::filesystem::path> folders) : folders_(std::move(folders)) {}
  // Looks anew at the folders, but not more often than every ten seconds: each time costs the file
  // server two calls that write.
  void refresh();

 private:
  const std::vector<std::filesystem::path> folders_;
  std::chrono::steady_clock::time_point next_;
};

}  // namespace muster::folder
