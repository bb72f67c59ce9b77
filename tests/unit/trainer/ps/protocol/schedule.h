#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace muster::ps::protocol {

// The faults that may happen to a job at one moment, besides the event that would come next anyway.
enum class Fault : char {
  pick = 'p',    // something else that could happen goes first
  kill = 'k',    // a process dies; what it sent last arrives, or some of it does not
  oust = 'o',    // a process stops, is taken for lost, and a successor starts beside it
  pause = 's',   // a process stops
  wake = 'w',    // a stopped one goes on
  cut = 'c',     // a stream breaks, and what is in it is lost
  repeat = 'r',  // a message comes twice
  hold = 'h',    // what is in a stream stays there until the faults are over
  expire = 'e',  // a control call's deadline passes; the request may still arrive
  fail = 'f',    // the next operation on the storage fails
  lose = 'l',    // the storage loses its last rename
  quit = 'q',    // a worker without which the group can do dies, or stops, for good
  part = 't',    // a ps has had no stream to a standby for too long
};
constexpr Fault kFaults[] = {Fault::pick, Fault::kill,   Fault::oust, Fault::pause,  Fault::wake,
                             Fault::cut,  Fault::repeat, Fault::hold, Fault::expire, Fault::fail,
                             Fault::lose, Fault::quit,   Fault::part};

struct Deviation {
  Fault fault = Fault::pick;
  int argument = 0;  // which process, stream or event, modulo how many there are
};

// The size of a simulated job and its settings.
struct Setting {
  int shards = 1;
  int members = 2;
  int steps = 3;
  int checkpoint_every = 1;
  bool sync = true;
  int backups = 0;       // sync
  bool bounded = false;  // not sync: bounded staleness
  int copies = 1;        // of each shard
  int staleness = 0;     // bounded: the most
};

// Returns "sync", "backup1", "async", "bounded", "bounded1" (the staleness, if it is not 0); with
// two copies of each shard "sync-twice" and so on.
std::string policy_of(const Setting& setting);

// One run: a setting, and deviations from the fair order of events, keyed by the number of the
// event that they come before. The same schedule always runs the same way.
struct Schedule {
  Setting setting;
  std::map<int, Deviation> deviations;

  // "sync 1x2x3/1: 12k0 17p3": policy, shards, members, steps, steps between checkpoints. Policies
  // are named as by policy_of().
  std::string text() const;
  // Throws std::invalid_argument.
  static Schedule parse(const std::string& text);
};

Schedule random_schedule(uint64_t seed);

// Returns what is left of a failing schedule when nothing more can be left out.
Schedule shrink(Schedule failing, const std::function<bool(const Schedule&)>& fails);

}  // namespace muster::ps::protocol
