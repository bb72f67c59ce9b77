#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/system/descriptor.h"

namespace muster::folder {

// The times for renewing and judging a lease. No two clocks are ever compared: a process that wants
// the folder checks whether the lease changes, for a time by its own clock.
struct LeasePace {
  std::chrono::milliseconds renewal{2000};
  // A lease that does not change for this long belongs to a process that has gone.
  std::chrono::milliseconds silence{15000};
  std::chrono::milliseconds glance{250};  // time between looks at another process's lease
  // How long an earlier job of the same name may take to leave.
  std::chrono::milliseconds patience{std::chrono::minutes(10)};
};

// Whether a process of this machine holds the lease; of any machine, if the file server supports
// locks. The answer comes at once, but false says nothing about other machines. Throws Unavailable
// if the lease cannot be looked at.
bool is_locked(const std::filesystem::path& storage);

// The file "lease" in a job's folder, which shows that the job's rank 0 lives. It is renewed and
// locked while this object lives.
class FolderLease {
 public:
  // Renews the lease on a separate thread and calls `watch` before each renewal; `watch` must not
  // throw. If the lease cannot be written, this is logged once, and writing is repeated.
  FolderLease(const std::filesystem::path& storage, std::chrono::milliseconds renewal,
              std::function<void()> watch);
  // Removes the file if it is still ours.
  ~FolderLease();
  FolderLease(const FolderLease&) = delete;
  FolderLease& operator=(const FolderLease&) = delete;

 private:
  void run(const std::stop_token& stop);
  void write();
  void lock();

  const std::filesystem::path path_;
  const std::string process_;  // distinguishes holders
  const std::chrono::milliseconds renewal_;
  const std::function<void()> watch_;
  uint64_t renewals_ = 0;
  bool failed_ = false;
  Descriptor locked_;
  std::jthread thread_;
};

enum class Holder { none, alive, undecided };

// Checks whether somebody holds a folder. Each look() is one glance; the answer is `undecided`
// until the lease has changed, or has been silent for long enough.
class LeaseWatch {
 public:
  LeaseWatch(const std::filesystem::path& storage, std::chrono::milliseconds silence);
  // Throws Unavailable if the lease cannot be read.
  Holder look();

 private:
  using Clock = std::chrono::steady_clock;

  const std::filesystem::path path_;
  const std::chrono::milliseconds silence_;
  std::string seen_;
  Clock::time_point since_;
};

}  // namespace muster::folder
