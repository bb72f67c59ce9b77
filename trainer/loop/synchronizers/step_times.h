#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/collective/session.h"

namespace muster::loop {

// How long each member of a collective computes for a step, smoothed: the group is as quick as the
// slowest.
class StepTimes {
 public:
  // `ranks`: of the members, in their order.
  explicit StepTimes(std::vector<int> ranks = {})
      : ranks_(std::move(ranks)), seconds_(ranks_.size()) {}

  // What the session knows of the step just made.
  void add(const collective::Session& session);
  // stragglerRank: whose steps take longest; stragglerSlowdown: how many times as long as the
  // median member's. Nothing of fewer than two members.
  std::map<std::string, double> metrics() const;

 private:
  std::vector<int> ranks_;
  std::vector<double> seconds_;
};

}  // namespace muster::loop
