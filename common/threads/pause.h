#pragma once

#include <chrono>
#include <stop_token>

namespace muster {

// Sleeps for `time`, or until `stop`. Returns false after a stop.
bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop);

// Returns the milliseconds until `then`, rounded up and at least 0, as a timeout for poll().
int milliseconds_until(std::chrono::steady_clock::time_point then);

}  // namespace muster
