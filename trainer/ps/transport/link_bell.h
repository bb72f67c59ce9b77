#pragma once

#include <chrono>
#include <stop_token>

#include "common/threads/doorbell.h"

namespace muster::ps {

// Wakes a member that waits for several links at once. The threads or processes behind the links
// ring the bell.
class LinkBell {
 public:
  LinkBell() = default;
  LinkBell(const LinkBell&) = delete;
  LinkBell& operator=(const LinkBell&) = delete;

  // Uses `door` from now on (null: its own door); a waiter spins `spins` times before it sleeps.
  // Precondition: no thread waits.
  void hang(Doorbell* door, uint32_t spins) {
    door_ = door ? door : &own_;
    spins_ = spins;
  }
  void ring() { muster::ring(*door_); }

  // Waits until `ready` returns true, `stop` is requested or `most` has passed; returns true if
  // ready.
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
