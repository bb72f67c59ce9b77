#include "tests/unit/trainer/collective/protocol/simulated_job.h"
#include "tests/unit/trainer/simulation/runs.h"

namespace muster::collective::protocol {
namespace {

using Schedule = simulation::Schedule<Setting>;

bool run(const Schedule& schedule, Outcome& total) {
  return simulation::run<SimulatedJob>(schedule, total);
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
  const Outcome calm = undisturbed<SimulatedJob>(setting);
  EXPECT_EQ(calm.generations, setting.hosts == kHidden ? 3 : 1);
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
  for (const auto& fault : all_faults(calm.events, arguments))
    if (!run({setting, {fault}}, total)) return;
  EXPECT_GT(total.count("kept"), 0);
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
  EXPECT_GT(total.count("restored"), 0);
  EXPECT_GT(total.count("resized"), 0);
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
  run_asked<SimulatedJob>("3(1-4)r4 5/2 @1: 60k0 90o2 120c3");
}

TEST(CollectiveProtocol, HoldsInRandomSchedules) {
  Outcome total;
  const int enough = run_random<SimulatedJob>(8000, total);
  if (enough == 0) return;
  EXPECT_GT(total.faults, 2 * enough);
  EXPECT_GT(total.restarts, enough / 2);
  EXPECT_GT(total.generations, 3 * enough / 2);
  EXPECT_GT(total.count("published step"), enough);
  EXPECT_GT(total.count("kept"), enough / 2);
  EXPECT_GT(total.count("restored"), enough / 20);
  EXPECT_GT(total.count("shared"), enough / 2);
  EXPECT_GT(total.count("resized"), enough / 20);
}

}  // namespace
}  // namespace muster::collective::protocol
