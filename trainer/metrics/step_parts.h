#pragma once

#include <array>
#include <string_view>

#include "common/job/time_use.h"
#include "trainer/metrics/durations.h"

namespace muster::metrics {

class Reporter;

// Splits the time of each step into parts, by what a ledger (common/program/time_ledger.h) says at
// the ends of steps. A step counts in the parts on which it has spent time. Not thread-safe.
class StepParts {
 public:
  // The values of the label `part` of step_part_seconds, in the order of histograms_.
  static constexpr std::array<std::string_view, 6> kNames = {"input",   "compute", "communication",
                                                             "slowest", "update",  "checkpoint"};

  // What was spent until now belongs to no step.
  void begin(const TimeSpent& spent) { before_ = spent; }
  // Ends a step. `update` are seconds of the step that went into its update, if they are known
  // apart; the ledger has them under computing.
  void end_step(const TimeSpent& spent, double update);
  // Adds the steps since the call before to the histograms of `reporter`.
  void report(Reporter& reporter);

 private:
  TimeSpent before_;
  std::array<Durations, kNames.size()> histograms_;
};

}  // namespace muster::metrics
