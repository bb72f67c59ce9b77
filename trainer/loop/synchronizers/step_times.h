#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/collective/session.h"

namespace muster::loop {

// The smoothed time that each member of a group needs to compute its gradients for a step. The
// slowest member decides the group's speed.
class StepTimes {
 public:
  // `ranks` are the members' ranks, in the members' order.
  explicit StepTimes(std::vector<int> ranks = {})
      : ranks_(std::move(ranks)), times_(ranks_.size()) {}

  // Adds the times of the step just made.
  void add(const collective::Session& session);
  // Returns the longest computing time of a member in the step added last; 0 before the first.
  double slowest_now() const { return slowest_now_; }
  std::map<std::string, double> metrics() const;

 private:
  std::vector<int> ranks_;
  std::vector<collective::ComputingTime> times_;
  double slowest_now_ = 0;
};

// Adds a step's time to `average`, a member's smoothed time.
void add_to_average(collective::ComputingTime& average, const collective::ComputingTime& time);

// stragglerRank is the member with the longest steps; stragglerSlowdown is the ratio of its time to
// the median member's; stragglerInputShare is the share of the difference that it waits for batches
// of its data: 0 to 1. Empty for fewer than two members. `times` are those of `ranks`.
std::map<std::string, double> straggler_of(const std::vector<int>& ranks,
                                           const std::vector<collective::ComputingTime>& times);

}  // namespace muster::loop
