#pragma once

#include <string>
#include <vector>

#include "tests/unit/trainer/simulation/schedule.h"

namespace muster::ps::protocol {

using namespace simulation;

// The size of a simulated job and its settings, as text "sync 1x2x3/1": policy, shards, members,
// steps, steps between checkpoints.
struct Setting {
  static constexpr const char* kExample = "sync 1x2x3/1: 12k0";
  static constexpr Fault kFaults[] = {
      Fault::pick, Fault::kill,   Fault::oust, Fault::pause, Fault::wake, Fault::cut, Fault::repeat,
      Fault::hold, Fault::expire, Fault::fail, Fault::lose,  Fault::quit, Fault::part};

  int shards = 1;
  int members = 2;
  int steps = 3;
  int checkpoint_every = 1;
  bool sync = true;
  int backups = 0;       // sync
  bool bounded = false;  // not sync: bounded staleness
  int copies = 1;        // of each shard
  int staleness = 0;     // bounded: the most

  static Schedule<Setting> random_schedule(uint64_t seed);
  std::string text() const;
  bool read(std::istream& in);
  std::vector<Setting> smaller() const;
  // Returns "sync", "backup1", "async", "bounded", "bounded1" (the staleness, if it is not 0); with
  // two copies of each shard "sync-twice" and so on.
  std::string policy() const;
};

}  // namespace muster::ps::protocol
