#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "common/program/hang_guard.h"

namespace muster::loop {

// Runs a program's body: the one place where exceptions become exit codes (common/exit_code.h).
// `tell` gets the message of the exception; without `tell` it is logged as an error.
using Tell = std::function<void(const std::string& message)>;
int run_guarded(const std::function<int()>& body, const Tell& tell = {});

// Watches this process's work. What gives no sign of life for MUSTER_HANG_SECONDS (30; 0: nobody
// watches) is told; if only another process would go on, this one ends with kHung after three times
// as long. Throws Invalid for another text in that variable.
std::unique_ptr<HangGuard> guard_against_hangs();

// Throws Invalid with kMiscomputes if what this process computes with on the CPU gives wrong
// answers: compute/cpu/check/checked_kernels.h. Takes a few milliseconds.
void require_right_answers();

// SIGTERM and SIGINT as a stop token. It must be made before any other thread, so that all threads
// leave the signals to it. A second signal ends the process at once.
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
