#pragma once

#include <chrono>
#include <stop_token>

namespace muster {

// Sleeps, but for no longer than until `stop`. False: asked to stop.
bool pause_for(std::chrono::milliseconds time, const std::stop_token& stop);

}  // namespace muster
