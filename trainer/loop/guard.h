#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

namespace muster::loop {

// Runs a program's body: the one place where exceptions become exit codes (common/exit_code.h).
// `tell` gets the message of the exception; without `tell` it is logged as an error.
using Tell = std::function<void(const std::string& message)>;
int run_guarded(const std::function<int()>& body, const Tell& tell = {});

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
