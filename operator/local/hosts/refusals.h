#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace muster::local {

// Decides whether to start ssh again after it has failed. An sshd with many new connections refuses
// some of them at random (MaxStartups), and accepts the same connections a moment later.
class Refusals {
 public:
  static constexpr int kMost = 7;

  // `code` and `last_line` are the exit code of ssh and its last line. Call this if the command on
  // the host has written nothing. Returns the time to wait before ssh is started again: longer each
  // time, some ten seconds in all. Returns nothing if ssh has failed for another reason, or has
  // been refused kMost times.
  std::optional<std::chrono::milliseconds> pause_after(int code, const std::string& last_line);

 private:
  int count_ = 0;
};

}  // namespace muster::local
