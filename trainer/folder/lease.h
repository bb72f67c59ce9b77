#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/descriptor.h"

namespace muster::folder {

// How a lease is renewed and judged. No two clocks are ever compared: who wants the folder looks
// whether the lease changes, for as long as its own clock says.
struct LeasePace {
  std::chrono::milliseconds renewal{2000};
  // A lease that does not change for this long is that of a process that is gone.
  std::chrono::milliseconds silence{15000};
  std::chrono::milliseconds glance{250};  // between looks at another's lease
  // How long an earlier job of the same name may take to leave.
  std::chrono::milliseconds patience{std::chrono::minutes(10)};
};

// Whether a process of this machine holds the lease, or of any machine where the file server knows
// locks: at once, but false says nothing of other machines. Throws Unavailable where it cannot be
// looked at.
bool is_locked(const std::filesystem::path& storage);

// The file "lease" in a job's folder: says that the job's rank 0 lives, while this object does. It
// is renewed, and locked for as long.
class Lease {
 public:
  // Renews it on a thread of its own, with `watch` before each renewal; `watch` may throw nothing.
  // A lease that cannot be written is tried again, and said once in the log.
  Lease(const std::filesystem::path& storage, std::chrono::milliseconds renewal,
        std::function<void()> watch);
  // Takes the file away where it is still ours.
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  void run(const std::stop_token& stop);
  void write();
  void lock();

  const std::filesystem::path path_;
  const std::string process_;  // tells two holders apart
  const std::chrono::milliseconds renewal_;
  const std::function<void()> watch_;
  uint64_t renewals_ = 0;
  bool failed_ = false;
  Descriptor locked_;
  std::jthread thread_;
};

enum class Holder { none, alive, undecided };

// Looks whether somebody holds a folder. Each look() is one glance; the answer is `undecided` until
// the lease has changed, or has been silent for long enough.
class LeaseWatch {
 public:
  LeaseWatch(const std::filesystem::path& storage, std::chrono::milliseconds silence);
  // Throws Unavailable where it cannot be read.
  Holder look();

 private:
  using Clock = std::chrono::steady_clock;

  const std::filesystem::path path_;
  const std::chrono::milliseconds silence_;
  std::string seen_;
  Clock::time_point since_;
};

}  // namespace muster::folder
