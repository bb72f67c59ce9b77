#pragma once

#include <chrono>
#include <deque>

namespace muster::supervise {

// Decides whether a trainer that has ended is started again in place, or its container ends so that
// the operator decides. A state machine without a clock.
class RestartRule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kWindow{10};  // a restart counts for this long

  // Allows at most `limit` restarts within kWindow; 0: none.
  explicit RestartRule(int limit) : limit_(limit) {}

  // Returns whether the trainer is restarted, and counts the restart. The trainer is not restarted
  // after a success; after an exit code that a restart in place cannot help (common/exit_code.h) or
  // that means that the program does not exist; and after it was killed because memory was short:
  // then the container ends, so that the reason is visible.
  bool restarts(int exit_code, bool out_of_memory, Time now);
  int limit() const { return limit_; }
  int total() const { return total_; }

 private:
  int limit_;
  int total_ = 0;
  std::deque<Time> recent_;
};

}  // namespace muster::supervise
