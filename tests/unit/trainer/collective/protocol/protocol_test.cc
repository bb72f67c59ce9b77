#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>

#include "tests/unit/trainer/collective/protocol/simulated_job.h"

namespace muster::collective::protocol {
namespace {

// MUSTER_COLLECTIVE_SCHEDULE runs one schedule, and prints what happens in it.
// MUSTER_COLLECTIVE_SEED is the first seed of the random ones, MUSTER_COLLECTIVE_SCHEDULES how many
// there are of them.
uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string violation_of(const Schedule& schedule, bool traced = false) {
  try {
    SimulatedJob(schedule, traced).run();
  } catch (const Violation& violation) {
    return violation.what();
  }
  return "";
}

// The smallest schedule that still fails, to be run again, and what happens in it.
void report(const Schedule& failing) {
  const Schedule least =
      shrink(failing, [](const Schedule& schedule) { return !violation_of(schedule).empty(); });
  ADD_FAILURE() << "MUSTER_COLLECTIVE_SCHEDULE=\"" << least.text() << "\"\n"
                << violation_of(least, /*traced=*/true);
}

// False after a violation.
bool run(const Schedule& schedule, Outcome& total) {
  try {
    total += SimulatedJob(schedule, false).run();
  } catch (const Violation&) {
    report(schedule);
    return false;
  }
  return true;
}

Setting setting_of(int members, int least, int most, int replicas, Setting::Hosts hosts) {
  Setting setting;
  setting.members = members;
  setting.least = least;
  setting.most = most;
  setting.replicas = replicas;
  setting.batches = 4;
  setting.hosts = hosts;
  return setting;
}

constexpr auto kOne = Setting::Hosts::one;
constexpr auto kTwo = Setting::Hosts::two;
constexpr auto kHidden = Setting::Hosts::hidden;

std::string name_of(const ::testing::TestParamInfo<Setting>& info) {
  const Setting& setting = info.param;
  return std::to_string(setting.members) + (setting.elastic() ? "_elastic" : "") +
         (setting.replicas > 0 ? "_global" : "") +
         (setting.hosts == kOne   ? "_shared"
          : setting.hosts == kTwo ? "_wire"
                                  : "_hidden");
}

class OneFaultTest : public ::testing::TestWithParam<Setting> {};

// Every fault that a small job can meet, at every moment of its undisturbed run.
TEST_P(OneFaultTest, HoldsWithEachFaultAtEachMoment) {
  const Setting& setting = GetParam();
  const Outcome undisturbed = SimulatedJob({setting, {}}, false).run();
  EXPECT_EQ(undisturbed.generations, setting.hosts == kHidden ? 3 : 1);
  const int seats = setting.members;
  const bool elastic = setting.elastic();
  const std::map<Fault, int> arguments = {{Fault::pick, 4},
                                          {Fault::kill, 4 * seats},
                                          {Fault::oust, seats},
                                          {Fault::pause, seats},
                                          {Fault::cut, seats * seats},
                                          {Fault::hold, seats * seats},
                                          {Fault::fail, 1},
                                          {Fault::lose, 1},
                                          {Fault::grow, elastic ? 1 : 0},
                                          {Fault::shrink, elastic ? 1 : 0},
                                          {Fault::quit, elastic ? 4 * seats : 0}};
  Outcome total;
  for (int at = 0; at < undisturbed.events; ++at)
    for (const auto& [fault, count] : arguments)
      for (int argument = 0; argument < count; ++argument)
        if (!run({setting, {{at, {fault, argument}}}}, total)) return;
  EXPECT_GT(total.kept, 0);
}

INSTANTIATE_TEST_SUITE_P(
    SmallJobs, OneFaultTest,
    ::testing::Values(setting_of(2, 0, 2, 0, kOne), setting_of(3, 0, 3, 0, kTwo),
                      setting_of(2, 0, 2, 0, kHidden), setting_of(3, 1, 4, 4, kOne),
                      setting_of(3, 1, 4, 0, kTwo), setting_of(2, 2, 3, 3, kHidden)),
    name_of);

// A worker that an elastic group has gone on without wakes up when all the others are lost: what
// it holds is of before the checkpoints.
TEST(CollectiveProtocol, HoldsWithAMemberThatSleepsWhileTheGroupGoesOn) {
  Outcome total;
  for (const Setting::Hosts hosts : {kOne, kTwo}) {
    Setting setting = setting_of(2, 1, 2, 2, hosts);
    setting.batches = 12;
    setting.checkpoint_every = 1;
    for (int at = 30; at < 100; at += 5)
      for (int lost = 20; lost < 200; lost += 7)
        for (int woken = 1; woken < 30; woken += 6) {
          const Schedule schedule{setting,
                                  {{at, {Fault::pause, 1}},
                                   {at + lost, {Fault::kill, 0}},
                                   {at + lost + woken, {Fault::wake, 0}}}};
          if (!run(schedule, total)) return;
        }
  }
  EXPECT_GT(total.restored, 0);
  EXPECT_GT(total.resized, 0);
}

// Schedules that found something, as they were printed.
TEST(CollectiveProtocol, HoldsInTheSchedulesThatItDidNotHoldIn) {
  Outcome total;
  for (const char* text :
       {// What rank 0 knew of its members was older than the steps that they had made since.
        "2(0-2)r0 1/3 @1: 24h13 35k61 46q18", "1(1-2)r2 1/2 @h: 22h0 23g34 45p1",
        "2(0-2)r0 3/2 @1: 82o34 99h46 117o15 123p0",
        "4(4-4)r4 1/1 @2: 5p5 40p7 43p0 44p1 51c46 60p7 64p4 67p7 75p0 76p4 78p1"})
    run(Schedule::parse(text), total);
}

TEST(CollectiveProtocol, RunsTheScheduleThatIsAskedFor) {
  const char* asked = std::getenv("MUSTER_COLLECTIVE_SCHEDULE");
  const Schedule schedule = Schedule::parse(asked ? asked : "3(1-4)r4 5/2 @1: 60k0 90o2 120c3");
  SimulatedJob job(schedule, /*traced=*/true);
  EXPECT_EQ(schedule.text(), Schedule::parse(schedule.text()).text());
  EXPECT_NO_THROW(job.run());
  EXPECT_THAT(job.trace(), ::testing::HasSubstr("the faults are over"));
  if (asked) std::cout << job.trace() << std::endl;
}

TEST(CollectiveProtocol, HoldsInRandomSchedules) {
  const uint64_t first = number_from("MUSTER_COLLECTIVE_SEED", 1);
  const uint64_t count = number_from("MUSTER_COLLECTIVE_SCHEDULES", 8000);
  Outcome total;
  for (uint64_t seed = first; seed < first + count; ++seed)
    if (!run(random_schedule(seed), total)) return;
  if (count < 1000) return;
  const int enough = static_cast<int>(count);
  EXPECT_GT(total.faults, 2 * enough);
  EXPECT_GT(total.restarts, enough / 2);
  EXPECT_GT(total.generations, 3 * enough / 2);
  EXPECT_GT(total.checkpoints, enough);
  EXPECT_GT(total.kept, enough / 2);
  EXPECT_GT(total.restored, enough / 20);
  EXPECT_GT(total.shared, enough / 2);
  EXPECT_GT(total.resized, enough / 20);
}

}  // namespace
}  // namespace muster::collective::protocol
