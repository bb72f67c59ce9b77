#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace muster::local {

// An sshd that has many connections to begin refuses some of them at random (MaxStartups), and
// takes the same ones a moment later. Whoever starts ssh asks this class whether to start it again.
class Refusals {
 public:
  static constexpr int kMost = 7;

  // Takes how ssh has ended, its exit code and its last line, where the command on the host has
  // said nothing. Returns how long to wait before ssh is started again: longer each time, some ten
  // seconds together. Returns nothing if ssh has failed for another reason, or has been refused
  // kMost times.
  std::optional<std::chrono::milliseconds> pause_after(int code, const std::string& last_line);

 private:
  int count_ = 0;
};

}  // namespace muster::local
