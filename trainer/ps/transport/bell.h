#pragma once

#include <chrono>
#include <stop_token>

#include "common/doorbell.h"

namespace muster::ps {

// Wakes a member that waits for several links at once, from whatever thread or process carries
// them.
class Bell {
 public:
  Bell() = default;
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // Rings at `door` from now on (null: at one of its own), spinning so often before it sleeps.
  // Nobody may be waiting.
  void hang(Doorbell* door, uint32_t spins) {
    door_ = door ? door : &own_;
    spins_ = spins;
  }
  void ring() { muster::ring(*door_); }

  // Until `ready`, `stop` or `most`; true if ready.
  template <class Ready>
  bool wait(const std::stop_token& stop, std::chrono::milliseconds most, Ready ready) {
    using Clock = std::chrono::steady_clock;
    const std::stop_callback on_stop(stop, [this] { ring(); });
    const Clock::time_point until = Clock::now() + most;
    for (;;) {
      const uint32_t seen = rung(*door_);
      if (ready()) return true;
      const auto left = until - Clock::now();
      if (stop.stop_requested() || left <= Clock::duration::zero()) return false;
      wait_for_ring(*door_, seen, left, spins_);
    }
  }

 private:
  Doorbell own_;
  Doorbell* door_ = &own_;
  uint32_t spins_ = 0;
};

}  // namespace muster::ps
