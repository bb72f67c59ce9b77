#include "tests/unit/operator/plan/simulator.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace muster::plan {
namespace {

// MUSTER_SIMULATOR_SEED runs one schedule of each kind, with its trace if it fails;
// MUSTER_SIMULATOR_SCHEDULES sets how many run of each.
uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string trace_of(uint64_t seed, Faults faults) {
  try {
    Simulator(seed, faults, /*traced=*/true).run();
  } catch (const Violation& violation) {
    return violation.what();
  }
  return "the second run of this seed did not fail: the simulator is not deterministic";
}

bool runs_one_seed() {
  return std::getenv("MUSTER_SIMULATOR_SEED") != nullptr;
}

uint64_t schedules() {
  return runs_one_seed() ? 1 : number_from("MUSTER_SIMULATOR_SCHEDULES", 5000);
}

// Runs the schedules up to the first violation.
Outcome simulate(Faults faults) {
  const uint64_t first = number_from("MUSTER_SIMULATOR_SEED", 1);
  Outcome total;
  for (uint64_t seed = first; seed < first + schedules(); ++seed) {
    try {
      total += Simulator(seed, faults).run();
    } catch (const Violation&) {
      ADD_FAILURE() << "MUSTER_SIMULATOR_SEED=" << seed << ": " << trace_of(seed, faults);
      break;
    }
  }
  return total;
}

// Schedules that never got anywhere would hold anything.
void expect_to_have_reached_everything(const Outcome& total) {
  if (runs_one_seed()) return;
  const int enough = static_cast<int>(schedules() / 20);
  EXPECT_GT(total.succeeded, enough);
  EXPECT_GT(total.failed, enough);
  EXPECT_GT(total.restarts, enough);
  EXPECT_GT(total.job_restarts, enough);
  EXPECT_GT(total.resumed, enough);
  EXPECT_GT(total.writes_lost, enough);
  EXPECT_GT(total.in_place, enough);
  EXPECT_GT(total.returned, enough);
  EXPECT_GT(total.cut_off, enough);
  EXPECT_GT(total.lengthened, enough);
}

TEST(Simulator, HoldsWithLaggingViewsAndLostCalls) {
  expect_to_have_reached_everything(simulate(Faults::lagging));
}

TEST(Simulator, HoldsWithReorderedViewsAndVanishingReplicas) {
  expect_to_have_reached_everything(simulate(Faults::reordered));
}

TEST(Simulator, HoldsWithAPausedLeaderThatWakesUpLate) {
  const Outcome total = simulate(Faults::paused_leader);
  expect_to_have_reached_everything(total);
  if (!runs_one_seed()) {
    EXPECT_GT(total.late_actions, static_cast<int>(schedules() / 20));
  }
}

}  // namespace
}  // namespace muster::plan
