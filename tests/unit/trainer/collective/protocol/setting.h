#pragma once

#include <string>
#include <vector>

#include "tests/unit/trainer/simulation/schedule.h"

namespace muster::collective::protocol {

using namespace simulation;

// The size of a simulated job and its settings, as text "3(1-4)r4 5/2 @1": members, of an elastic
// group how few and how many, replicas, batches, steps between checkpoints, hosts.
struct Setting {
  static constexpr const char* kExample = "2(0-2)r0 5/2 @1: 12k0";
  static constexpr Fault kFaults[] = {Fault::pick, Fault::kill, Fault::oust,   Fault::pause,
                                      Fault::wake, Fault::cut,  Fault::hold,   Fault::fail,
                                      Fault::lose, Fault::grow, Fault::shrink, Fault::quit};

  int members = 2;   // to begin with
  int least = 0;     // elastic: the fewest; 0: it is not
  int most = 2;      // elastic
  int replicas = 0;  // 0: as many as members
  int batches = 5;   // an epoch; there are two
  int checkpoint_every = 2;
  // Where members are: on one host; on two; on one, and rank 1 cannot open the others' memory.
  enum class Hosts : char { one = '1', two = '2', hidden = 'h' } hosts = Hosts::one;

  static Schedule<Setting> random_schedule(uint64_t seed);
  std::string text() const;
  bool read(std::istream& in);
  std::vector<Setting> smaller() const;
  bool elastic() const { return least > 0; }
};

}  // namespace muster::collective::protocol
