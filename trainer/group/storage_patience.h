#pragma once

#include <chrono>
#include <stop_token>
#include <type_traits>

#include "common/file.h"
#include "trainer/group/backoff.h"

namespace muster::group {

// For what must be written before anything goes on: a full disk, or a file server that fails, is
// waited for. Who waits says so by name when it begins, twice a minute, and when it is over.
class StoragePatience {
 public:
  explicit StoragePatience(std::chrono::milliseconds most = kStoragePatience) : most_(most) {}

  // Waits a while, then the write may be tried again. False where it will not be mended by waiting,
  // the patience is over, or `stop` was requested.
  bool wait(const WriteError& error, std::stop_token stop = {});
  // It could be written.
  void rest();

 private:
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds most_;
  Backoff backoff_;
  bool waiting_ = false;
  Clock::time_point begun_;
  Clock::time_point told_;
};

// Does `work`, and does it again while StoragePatience waits. Throws what it threw last.
template <class Work>
auto patiently(std::stop_token stop, Work work) {
  StoragePatience patience;
  for (;;) {
    try {
      if constexpr (std::is_void_v<decltype(work())>) {
        work();
        return patience.rest();
      } else {
        auto result = work();
        patience.rest();
        return result;
      }
    } catch (const WriteError& error) {
      if (!patience.wait(error, stop)) throw;
    }
  }
}

// Makes a folder that this process must be able to write in. Throws WriteError naming it.
void require_writable(const std::filesystem::path& folder);

}  // namespace muster::group
