#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace muster::collective::protocol {

// What may happen to a job at one moment, besides what would have happened next anyway.
enum class Fault : char {
  pick = 'p',    // something else that could happen goes first
  kill = 'k',    // a process dies; what it sent last arrives, or some of it does not
  oust = 'o',    // a process stops, is taken for lost, and a successor starts beside it
  pause = 's',   // a process stops
  wake = 'w',    // a stopped one goes on
  cut = 'c',     // a stream breaks, and what is in it is lost
  hold = 'h',    // what is in a stream stays there until the faults are over
  fail = 'f',    // the next operation on the storage fails
  lose = 'l',    // the storage loses its last rename
  grow = 'g',    // elastic: one worker more
  shrink = 'd',  // elastic: the last worker is asked to leave
  quit = 'q',    // elastic: a worker dies for good
};
constexpr Fault kFaults[] = {Fault::pick, Fault::kill, Fault::oust,   Fault::pause,
                             Fault::wake, Fault::cut,  Fault::hold,   Fault::fail,
                             Fault::lose, Fault::grow, Fault::shrink, Fault::quit};

struct Deviation {
  Fault fault = Fault::pick;
  int argument = 0;  // which process, stream or event, modulo how many there are
};

struct Setting {
  int members = 2;   // to begin with
  int least = 0;     // elastic: the fewest; 0: it is not
  int most = 2;      // elastic
  int replicas = 0;  // 0: as many as members
  int batches = 5;   // an epoch; there are two
  int checkpoint_every = 2;
  // Where members are: on one host; on two; on one, and rank 1 cannot open the others' memory.
  enum class Hosts : char { one = '1', two = '2', hidden = 'h' } hosts = Hosts::one;

  bool elastic() const { return least > 0; }
};

// One run: a setting, and deviations from the fair order in which things happen by themselves, by
// the number of the event that they come before. The same schedule runs the same way.
struct Schedule {
  Setting setting;
  std::map<int, Deviation> deviations;

  // "3(1-4)r4 5/2 @1: 12k0 17p3": members, of an elastic group how few and how many, replicas,
  // batches, steps between checkpoints, hosts.
  std::string text() const;
  // Throws std::invalid_argument.
  static Schedule parse(const std::string& text);
};

Schedule random_schedule(uint64_t seed);

// What is left of a failing schedule when nothing more can be left out.
Schedule shrink(Schedule failing, const std::function<bool(const Schedule&)>& fails);

}  // namespace muster::collective::protocol
