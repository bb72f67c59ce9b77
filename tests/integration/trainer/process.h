#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/slowdown.h"

namespace muster::integration {

// How long a process or a condition is waited for.
constexpr std::chrono::seconds kPatience(120 * kSlowdown);

// A child process; killed when this goes.
class Process {
 public:
  struct Limits {
    std::optional<size_t> file_bytes;  // RLIMIT_FSIZE: writes beyond it fail
  };

  // Standard output and error go to the end of `log`.
  Process(const std::vector<std::string>& command, const std::map<std::string, std::string>& more,
          const std::filesystem::path& log, const Limits& limits);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // If the signal is SIGSTOP, the process has stopped when this returns.
  void signal(int number);
  bool running();
  pid_t pid() const { return pid_; }
  // In MiB; 0 once it has ended.
  long peak_memory() const;
  // Exit code, or 128 + signal; nothing if it still runs after `most`.
  std::optional<int> wait(std::chrono::seconds most = kPatience);

 private:
  pid_t pid_;
  std::optional<int> code_;
};

// Waits until `ready`, for kPatience at most; false if that was too long.
template <class Ready>
bool eventually(Ready ready);

// The program's own folder for what its tests write; it goes when the program ends, unless a test
// failed.
const std::filesystem::path& scratch();

}  // namespace muster::integration

#include <thread>

template <class Ready>
bool muster::integration::eventually(Ready ready) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!ready()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}
