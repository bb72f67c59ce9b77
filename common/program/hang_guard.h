#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/threads/hang_watch.h"

namespace muster {

// Looks once a second, on a thread of its own, whether the work of this process goes on, and logs
// what stands still and when it goes on again. A process has one at most.
class HangGuard {
 public:
  // Work that gives no sign of life for `least` stands still; 0: nobody looks. `end` is called on
  // the guard's thread for a stall that is hopeless, unless a debugger holds the process; it should
  // end the process.
  HangGuard(std::chrono::milliseconds least, std::function<void(const Stall&)> end);
  ~HangGuard();
  HangGuard(const HangGuard&) = delete;
  HangGuard& operator=(const HangGuard&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A wait for the storage that its waiter knows of, such as one for room on a full disk: as long as
// it exists, current_stalls() has it.
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

// Returns what this process's guard has found to stand still at its last look, and the stalls that
// are known. Thread-safe.
std::vector<Stall> current_stalls();

}  // namespace muster
