#pragma once

#include <chrono>
#include <deque>

namespace muster::supervise {

// Decides whether a trainer that has ended is started again in place, or its container ends and
// leaves it to the operator. A state machine without a clock.
class RestartRule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kWindow{10};  // a restart counts for this long

  // Allows at most `limit` restarts within kWindow; 0: none.
  explicit RestartRule(int limit) : limit_(limit) {}

  // Returns whether the trainer is restarted, and counts the restart. Not restarted are: success;
  // exit codes that a restart in place cannot help (common/exit_code.h) or that mean that there is
  // no such program; and a process that was killed because memory was short: its container ends so
  // that everybody sees why.
  bool restarts(int exit_code, bool out_of_memory, Time now);
  int limit() const { return limit_; }
  int total() const { return total_; }

 private:
  int limit_;
  int total_ = 0;
  std::deque<Time> recent_;
};

}  // namespace muster::supervise
