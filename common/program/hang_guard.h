#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/threads/hang_watch.h"

namespace muster {

// Checks once a second, on a separate thread, whether the work of this process makes progress. Logs
// work that stands still, and when it continues. A process has at most one HangGuard.
class HangGuard {
 public:
  // Work without a sign of life for `least` stands still; 0: no checks. For a hopeless stall `end`
  // is called on the guard's thread, unless a debugger holds the process; `end` should end the
  // process.
  HangGuard(std::chrono::milliseconds least, std::function<void(const Stall&)> end);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A wait for storage that the code knows about, for example for room on a full disk. As long as
// this object exists, current_stalls() includes the wait.
class KnownStall {
 public:
  explicit KnownStall(std::string doing);  // Stall::doing
  ~KnownStall();
  KnownStall(const KnownStall&) = delete;
  KnownStall& operator=(const KnownStall&) = delete;

 private:
  friend std::vector<Stall> current_stalls();
  const std::string doing_;
  const std::chrono::steady_clock::time_point since_;
};

// Returns the stalls that this process's guard found at its last check, and the KnownStalls.
// Thread-safe.
std::vector<Stall> current_stalls();

}  // namespace muster
