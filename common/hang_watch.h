#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/watched_work.h"

namespace muster {

// Work that has given no sign of life for too long.
struct Stall {
  uint64_t work = 0;  // WatchedWork::Seen::id
  WatchedWork::Kind kind = WatchedWork::Kind::computing;
  std::string doing;                   // as WatchedWork::Seen has it
  std::chrono::milliseconds lasted{};  // since the last sign of life
  // Only another process will go on: the work is computing, it has stood still for three times as
  // long as it takes to be a stall (twenty times, as long as this process has not given any sign of
  // life: a first step may make a device's programs ready), and no storage is to blame, which would
  // make a new process stand still as well.
  bool hopeless = false;
};

// Decides which work stands still. It is told of all work about once a second, and has neither a
// thread nor a clock.
//
// How slow work is told from work that hangs: a step gives a sign of life after each of its phases
// (about one for each layer), not only at its end, so that a large batch or a first step is no
// hang. And a stall has to last for ten times the longest pause between two signs that the process
// has seen in work of this kind.
class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `least`: the shortest stall.
  explicit HangWatch(std::chrono::milliseconds least) : least_(least) {}

  // Returns what stands still at the time `now`, the longest first.
  std::vector<Stall> look(const std::vector<WatchedWork::Seen>& works, Time now);

 private:
  void note_ends(const std::vector<WatchedWork::Seen>& works);

  struct Followed {
    WatchedWork::Kind kind = WatchedWork::Kind::computing;
    uint64_t beats = 0;
    Time since;  // of the last sign of life that we have seen
  };
  std::chrono::milliseconds& longest(WatchedWork::Kind kind) {
    return longest_pause_[static_cast<size_t>(kind)];
  }

  const std::chrono::milliseconds least_;
  std::map<uint64_t, Followed> followed_;  // by the work's id
  std::chrono::milliseconds longest_pause_[2] = {};
  bool has_gone_on_ = false;  // a sign of life of computing was seen
  Time last_look_{};
};

}  // namespace muster
