#pragma once

#include <chrono>
#include <stop_token>

namespace muster {

// Sleeps for `time`, but ends early at `stop`. Returns false if it was asked to stop.
bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace muster
