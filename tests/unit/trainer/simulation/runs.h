#pragma once

#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/unit/trainer/simulation/world.h"

namespace muster::simulation {

// The runs of a kind of job by its tests. A Job is made of a Schedule, and of whether it keeps a
// trace; Job::kVariable begins the names of three variables of the environment: <it>_SCHEDULE runs
// one schedule and prints its events, <it>_SEED is the first seed of the random schedules, and
// <it>_SCHEDULES their number.

inline uint64_t number_from(const std::string& variable, uint64_t otherwise) {
  const char* text = std::getenv(variable.c_str());
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

template <class Job>
Outcome undisturbed(const typename Job::Setting& setting) {
  return Job({setting, {}}, /*traced=*/false).run();
}

template <class Job>
std::string violation_of(const Schedule<typename Job::Setting>& schedule, bool traced = false) {
  try {
    Job(schedule, traced).run();
  } catch (const Violation& violation) {
    return violation.what();
  }
  return "";
}

// Returns false after a violation. Then the test fails with the smallest schedule that still fails,
// to be run again, and its events.
template <class Job>
bool run(const Schedule<typename Job::Setting>& schedule, Outcome& total) {
  try {
    total += Job(schedule, /*traced=*/false).run();
    return true;
  } catch (const Violation&) {
    const auto least = shrink<typename Job::Setting>(
        schedule, [](const auto& one) { return !violation_of<Job>(one).empty(); });
    ADD_FAILURE() << Job::kVariable << "_SCHEDULE=\"" << least.text() << "\"\n"
                  << violation_of<Job>(least, /*traced=*/true);
    return false;
  }
}

template <class Job>
void run_asked(const char* otherwise) {
  using Schedule = Schedule<typename Job::Setting>;
  const char* asked = std::getenv((std::string(Job::kVariable) + "_SCHEDULE").c_str());
  const Schedule schedule = Schedule::parse(asked ? asked : otherwise);
  Job job(schedule, /*traced=*/true);
  EXPECT_EQ(schedule.text(), Schedule::parse(schedule.text()).text());
  EXPECT_NO_THROW(job.run());
  EXPECT_THAT(job.trace(), testing::HasSubstr("the faults are over"));
  if (asked) std::cout << job.trace() << std::endl;
}

// Returns the number of schedules that ran, if all of them held and they are enough to expect of
// them what random schedules reach; else 0.
template <class Job>
int run_random(uint64_t count, Outcome& total) {
  const std::string variable = Job::kVariable;
  const uint64_t first = number_from(variable + "_SEED", 1);
  count = number_from(variable + "_SCHEDULES", count);
  for (uint64_t seed = first; seed < first + count; ++seed)
    if (!run<Job>(Job::Setting::random_schedule(seed), total)) return 0;
  return count < 1000 ? 0 : static_cast<int>(count);
}

}  // namespace muster::simulation
