#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "common/program/hang_guard.h"

namespace muster::loop {

// Runs a program's body. Only this function turns exceptions into exit codes (common/exit_code.h).
// `tell` gets the message of the exception; without `tell` it is logged as an error.
using Tell = std::function<void(const std::string& message)>;
int run_guarded(const std::function<int()>& body, const Tell& tell = {});

// Watches this process's work. Logs work without a sign of life for MUSTER_HANG_SECONDS (default
// 30; 0: no watch). If only a new process could continue, this process ends with kHung after three
// times as long. Throws Invalid for any other text in the variable.
std::unique_ptr<HangGuard> guard_against_hangs();

// Throws Invalid with kMiscomputes if the CPU kernels of this process give wrong results (see
// compute/cpu/check/checked_kernels.h). Takes a few milliseconds.
void require_right_answers();

// SIGTERM and SIGINT as a stop token. Construct it before any thread starts, so that only this
// object gets the signals. A second signal ends the process at once.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;
  std::stop_token token() const { return source_.get_token(); }

 private:
  std::stop_source source_;
  std::jthread thread_;
};

}  // namespace muster::loop
