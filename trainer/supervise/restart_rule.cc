#include "trainer/supervise/restart_rule.h"

#include "common/exit_code.h"

namespace muster::supervise {

namespace {

constexpr int kCannotExecute = 126;
constexpr int kNotFound = 127;

bool may_help(int exit_code) {
  return exit_code != kSuccess && exit_code != kCannotExecute && exit_code != kNotFound &&
         exit_code != kFaulty && !is_permanent(exit_code);
}

}  // namespace

bool RestartRule::restarts(int exit_code, bool out_of_memory, Time now) {
  if (out_of_memory || !may_help(exit_code)) return false;
  while (!recent_.empty() && now - recent_.front() >= kWindow) recent_.pop_front();
  if (static_cast<int>(recent_.size()) >= limit_) return false;
  recent_.push_back(now);
  ++total_;
  return true;
}

}  // namespace muster::supervise
