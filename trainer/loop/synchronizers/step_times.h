#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/collective/session.h"

namespace muster::loop {

// The smoothed time that each member of a collective needs to compute a step. The slowest member
// decides the group's speed.
class StepTimes {
 public:
  // `ranks` are the members' ranks, in the members' order.
  explicit StepTimes(std::vector<int> ranks = {})
      : ranks_(std::move(ranks)), seconds_(ranks_.size()) {}

  // Adds the times of the step just made.
  void add(const collective::Session& session);
  // Returns the longest computing time of a member in the step added last; 0 before the first.
  double slowest_now() const { return slowest_now_; }
  // stragglerRank is the member with the longest steps; stragglerSlowdown is the ratio of its time
  // to the median member's. Empty for fewer than two members.
  std::map<std::string, double> metrics() const;

 private:
  std::vector<int> ranks_;
  std::vector<double> seconds_;
  double slowest_now_ = 0;
};

}  // namespace muster::loop
