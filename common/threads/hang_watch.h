#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/threads/watched_work.h"

namespace muster {

// Work that has given no sign of life for too long.
struct Stall {
  uint64_t work = 0;  // WatchedWork::Seen::id
  WatchedWork::Kind kind = WatchedWork::Kind::computing;
  std::string doing;                   // as WatchedWork::Seen has it
  std::chrono::milliseconds lasted{};  // since the last sign of life
  // Only a new process can go on: the work is computing; it has stood still for three times the
  // limit (twenty times before the first sign of life of such work, because a first step may make a
  // GPU's programs ready); and no storage stands still, because a new process would wait for it
  // too.
  bool hopeless = false;
};

// Decides which work stands still. It is told of all work about once a second, and has neither a
// thread nor a clock.
//
// How slow work is told from work that hangs: a step gives a sign of life after each of its phases
// (on a GPU after each batch), not only at its end, so that a large batch is no hang. And a stall
// has to last for ten times the longest pause that the process has seen in work of this kind,
// between two signs of life or until the end of the work.
class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `least`: the shortest stall.
  explicit HangWatch(std::chrono::milliseconds least) : least_(least) {}

  // Returns what stands still at the time `now`, the longest first.
  std::vector<Stall> look(const std::vector<WatchedWork::Seen>& works, Time now);

 private:
  struct Followed {
    WatchedWork::Kind kind = WatchedWork::Kind::computing;
    std::string doing;
    uint64_t beats = 0;
    Time since;  // of the last sign of life that we have seen
  };
  void learn(const Followed& followed, Time now);
  void learn_from_ends(const std::vector<WatchedWork::Seen>& works, Time now);

  const std::chrono::milliseconds least_;
  std::map<uint64_t, Followed> followed_;  // by the work's id
  std::map<WatchedWork::Kind, std::chrono::milliseconds> longest_pause_;
  std::set<std::string> has_gone_on_;  // computing of which a sign of life was seen, or the end
  Time last_look_{};
};

}  // namespace muster
