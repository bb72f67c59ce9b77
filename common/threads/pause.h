#pragma once

#include <chrono>
#include <stop_token>

namespace muster {

// Sleeps for `time`, but ends early at `stop`. Returns false if it was asked to stop.
bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop);

// Returns the milliseconds until `then`, rounded up and at least 0: how long poll() is to wait.
int milliseconds_until(std::chrono::steady_clock::time_point then);

}  // namespace muster
