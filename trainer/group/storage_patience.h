#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <type_traits>

#include "common/program/hang_guard.h"
#include "common/system/file.h"
#include "trainer/group/backoff.h"

namespace muster::group {

// Waits for the storage when a write must succeed before work can continue: a full disk or a
// failing file server may recover. Logs the error at the beginning of the wait, twice a minute, and
// at its end.
class StoragePatience {
 public:
  explicit StoragePatience(std::chrono::milliseconds most = kStoragePatience) : most_(most) {}

  // Waits a while before the write is tried again. Returns false if waiting cannot help, the
  // longest time is over, or `stop` was requested.
  bool wait(const WriteError& error, std::stop_token stop = {});
  // Called after a successful write: ends the waiting.
  void rest();

 private:
  using Clock = std::chrono::steady_clock;
  const std::chrono::milliseconds most_;
  Backoff backoff_;
  std::optional<KnownStall> waiting_;
  Clock::time_point begun_;
  Clock::time_point told_;
};

// Repeats `work` while it throws WriteError and StoragePatience allows it. Throws the last error.
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

// Creates a folder and checks that this process can write in it. Throws WriteError naming the
// folder.
void require_writable(const std::filesystem::path& folder);

}  // namespace muster::group
