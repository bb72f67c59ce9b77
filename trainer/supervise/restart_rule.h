#pragma once

#include <chrono>
#include <deque>

namespace muster::supervise {

// Whether a trainer that has ended is started again in place, or its container ends and leaves it
// to the operator. A state machine without a clock.
class RestartRule {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::minutes kWindow{10};  // for this long a restart counts

  // At most `limit` restarts within kWindow; 0: none.
  explicit RestartRule(int limit) : limit_(limit) {}

  // Restarted are all ends but these: success; exit codes that a restart cannot mend (common/
  // exit_code.h) or that say that there is no such program; and those of one that was killed for
  // want of memory, whose container ends so that everybody sees why. True: one more is counted.
  bool restarts(int exit_code, bool out_of_memory, Time now);
  int limit() const { return limit_; }
  int total() const { return total_; }

 private:
  int limit_;
  int total_ = 0;
  std::deque<Time> recent_;
};

}  // namespace muster::supervise
