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
  std::string doing;                   // WatchedWork::Seen::doing
  std::chrono::milliseconds lasted{};  // time since the last sign of life
  // Only a new process can continue. Three conditions: the work is computing; it has stood still
  // for three times the limit (twenty times before the first sign of life of such work, because a
  // first step may load a GPU's programs); and no work on storage stands still, because a new
  // process would wait for the storage too.
  bool hopeless = false;
};

// Decides which work stands still. Call look() with all work about once a second. Has neither a
// thread nor a clock.
//
// How to tell slow work from work that hangs: a step gives a sign of life after each of its phases
// (on a GPU after each batch), not only at its end, so that a large batch is not a hang. And a
// stall must last ten times as long as the longest pause that the process has seen in work of this
// kind, between two signs of life or before the end of the work.
class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `least`: the shortest stall.
  explicit HangWatch(std::chrono::milliseconds least) : least_(least) {}

  // Returns the work that stands still at the time `now`, the longest stall first.
  std::vector<Stall> look(const std::vector<WatchedWork::Seen>& works, Time now);

 private:
  struct Followed {
    WatchedWork::Kind kind = WatchedWork::Kind::computing;
    std::string doing;
    uint64_t beats = 0;
    Time since;  // time of the last sign of life
  };
  void learn(const Followed& followed, Time now);
  void learn_from_ends(const std::vector<WatchedWork::Seen>& works, Time now);

  const std::chrono::milliseconds least_;
  std::map<uint64_t, Followed> followed_;  // by the work's id
  std::map<WatchedWork::Kind, std::chrono::milliseconds> longest_pause_;
  std::set<std::string> has_gone_on_;  // computing work with a sign of life or an end so far
  Time last_look_{};
};

}  // namespace muster
