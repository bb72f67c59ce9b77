#include "tests/unit/trainer/ps/protocol/simulated_job.h"
#include "tests/unit/trainer/simulation/runs.h"

namespace muster::ps::protocol {
namespace {

using Schedule = simulation::Schedule<Setting>;

bool run(const Schedule& schedule, Outcome& total) {
  return simulation::run<SimulatedJob>(schedule, total);
}

// Returns every fault that a small job can meet, at every moment of its undisturbed run. Greater
// arguments than a moment has choices would only repeat the same faults.
std::vector<std::pair<int, Deviation>> all_faults(const Setting& setting, bool only_processes) {
  const int seats = setting.shards + setting.members;
  const int streams = setting.shards * (setting.members + 1) + setting.members - 1;
  const std::map<Fault, int> arguments =
      only_processes
          ? std::map<Fault, int>{{Fault::kill, 2 * seats}, {Fault::oust, seats}}
          : std::map<Fault, int>{{Fault::pick, 6},
                                 {Fault::kill, 4 * seats},
                                 {Fault::oust, seats},
                                 {Fault::pause, seats},
                                 {Fault::cut, streams},
                                 {Fault::repeat, streams},
                                 {Fault::hold, streams},
                                 {Fault::expire, setting.shards},
                                 {Fault::fail, 1},
                                 {Fault::lose, 1},
                                 {Fault::quit, setting.backups > 0 ? 5 * seats : 0},
                                 {Fault::part, setting.copies > 1 ? 2 * setting.shards : 0}};
  return all_faults(undisturbed<SimulatedJob>(setting).events, arguments);
}

class OneFaultTest : public testing::TestWithParam<Setting> {};

TEST_P(OneFaultTest, HoldsWithEachFaultAtEachMoment) {
  Outcome total;
  for (const auto& fault : all_faults(GetParam(), /*only_processes=*/false))
    if (!run({GetParam(), {fault}}, total)) return;
}

INSTANTIATE_TEST_SUITE_P(SmallJobs, OneFaultTest,
                         testing::Values(Setting{1, 1, 2, 1, true}, Setting{1, 2, 2, 1, true},
                                         Setting{2, 2, 3, 1, true}, Setting{1, 3, 2, 1, true, 1},
                                         Setting{2, 3, 3, 1, true, 1}, Setting{1, 2, 2, 1, false},
                                         Setting{2, 2, 3, 1, false},
                                         Setting{1, 2, 4, 1, false, 0, true},
                                         Setting{2, 2, 4, 1, false, 0, true},
                                         Setting{1, 2, 6, 1, false, 0, true, 1, 1},
                                         Setting{2, 3, 6, 1, false, 0, true, 1, 2},
                                         Setting{2, 2, 3, 1, true, 0, false, 2},
                                         Setting{2, 2, 4, 1, false, 0, false, 2}),
                         [](const auto& info) {
                           const Setting& setting = info.param;
                           std::string name = setting.policy() + "_" +
                                              std::to_string(setting.shards) + "x" +
                                              std::to_string(setting.members);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class OnePsLostTest : public testing::TestWithParam<Setting> {};

// At whatever moment a ps is lost, its standby goes on, with no step lost and none repeated.
// Likewise the serving ps goes on if its standby cannot be reached.
TEST_P(OnePsLostTest, NeverGoesBackToACheckpoint) {
  SimulatedJob job({GetParam(), {}}, /*traced=*/false);
  const Outcome undisturbed = job.run();
  ASSERT_GT(job.covered_at(), 0);
  EXPECT_EQ(undisturbed.count("loads for generation"), 1);
  const int seats = GetParam().shards + GetParam().members;
  for (int at = job.covered_at(); at < undisturbed.events; ++at)
    for (int ps = 0; ps < GetParam().shards; ++ps)
      for (const Deviation& fault :
           {Deviation{Fault::kill, ps}, Deviation{Fault::kill, ps + seats},
            Deviation{Fault::kill, ps + 2 * seats}, Deviation{Fault::kill, ps + 3 * seats},
            Deviation{Fault::oust, ps}, Deviation{Fault::part, ps}}) {
        Outcome outcome;
        const Schedule schedule{GetParam(), {{at, fault}}};
        if (!run(schedule, outcome)) return;
        ASSERT_EQ(outcome.count("loads for generation"), 1) << schedule.text();
      }
}

INSTANTIATE_TEST_SUITE_P(SmallJobs, OnePsLostTest,
                         testing::Values(Setting{2, 2, 6, 2, true, 0, false, 2},
                                         Setting{3, 2, 5, 2, true, 0, false, 2},
                                         Setting{2, 2, 12, 2, false, 0, false, 2},
                                         Setting{3, 2, 6, 2, false, 0, true, 2}),
                         [](const auto& info) {
                           std::string name =
                               info.param.policy() + "_" + std::to_string(info.param.shards);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// A process is taken for lost while it sleeps, and wakes up at any time after that: also when
// another generation runs, and with a checkpoint that it was about to publish.
TEST(Protocol, HoldsWithAProcessThatSleepsThroughItsReplacement) {
  Outcome total;
  const Setting setting{2, 2, 2, 1, true};
  for (const auto& [at, fault] : all_faults(setting, /*only_processes=*/true))
    for (int later = 1; fault.fault == Fault::oust && later < 170; later += 6)
      if (!run({setting, {{at, fault}, {at + later, {Fault::wake, 0}}}}, total)) return;
  EXPECT_GT(total.restarts, 0);
}

// A ps that sleeps while its stream to rank 0 breaks is left out, and comes back with outdated
// copies. If the ps whose shard it had copied is lost then, these copies must not be used.
TEST(Protocol, HoldsWithCopiesThatWereLeftBehind) {
  Outcome total;
  for (const Setting& setting :
       {Setting{3, 2, 9, 9, true, 0, false, 2}, Setting{3, 2, 12, 12, false, 0, false, 2}})
    for (int at = 120; at < 160; at += 10)
      for (const int asleep : {1, 2})
        for (int later = 80; later < 240; later += 20)
          for (int lost = 1; lost < 30; lost += 3) {
            const int woken = at + 1 + later;
            const Schedule schedule{setting,
                                    {{at, {Fault::pause, asleep}},
                                     {at + 1, {Fault::cut, asleep - 1}},  // the earliest streams
                                     {woken, {Fault::wake, 0}},
                                     {woken + lost, {Fault::kill, asleep - 1}}}};
            if (!run(schedule, total)) return;
          }
  EXPECT_GT(total.restarts, 0);
}

// A second fault comes while the group recovers from the first. With MUSTER_PROTOCOL_PAIRS=n every
// n-th pair of faults is tried; 1: all of them (ten minutes).
TEST(Protocol, HoldsWithTwoProcessesLost) {
  const uint64_t every = number_from("MUSTER_PROTOCOL_PAIRS", 421);
  Outcome total;
  uint64_t number = 0;
  for (const Setting& setting : {Setting{1, 2, 2, 1, true}, Setting{2, 2, 2, 1, true}}) {
    const auto faults = all_faults(setting, /*only_processes=*/true);
    for (const auto& first : faults)
      for (const auto& second : faults) {
        // The second fault may come after the end of the run with only the first.
        const int later = first.first + 1 + second.first;
        if (++number % every != 0) continue;
        if (!run({setting, {first, {later, second.second}}}, total)) return;
      }
  }
  EXPECT_GT(total.restarts, 0);
}

// Rank 0 opens the next generation on what a worker that will not come back has left.
TEST(Protocol, HoldsWithAWorkerLostForGoodAndRankZeroLostSoonAfter) {
  constexpr int kWays = 5;  // to quit
  Outcome total;
  const Setting setting{2, 2, 2, 2, true, 1};
  const int chief = setting.shards;
  const int seats = setting.shards + setting.members;
  for (const auto& [at, fault] : all_faults(setting, /*only_processes=*/false))
    for (int later = 1; fault.fault == Fault::quit && fault.argument < kWays && later < 16; ++later)
      for (const int seat : {chief, chief + seats})  // its last messages arrive, or not
        if (!run({setting, {{at, fault}, {at + later, {Fault::kill, seat}}}}, total)) return;
  EXPECT_GT(total.generations, 0);
}

// When the old rank 0 wakes up, its successor's generation runs, and its first act is to go on
// saving.
TEST(Protocol, HoldsWithARankZeroThatSleepsWhileItPublishes) {
  Outcome total;
  const Setting setting{1, 1, 3, 1, true};
  const int chief = setting.shards;
  const int events = undisturbed<SimulatedJob>(setting).events;
  for (int at = 0; at < events; ++at)
    for (int later = 12; later < 60; ++later)
      for (int pick = 0; pick < 4; ++pick)
        if (!run({setting,
                  {{at, {Fault::oust, chief}},
                   {at + later, {Fault::wake, 0}},
                   {at + later + 1, {Fault::pick, pick}}}},
                 total))
          return;
  EXPECT_GT(total.generations, 0);
}

// Schedules that have found errors, as they were printed.
TEST(Protocol, HoldsInTheSchedulesThatItDidNotHoldIn) {
  Outcome total;
  for (const char* text :
       {// The last checkpoint had been published, and not as the final one.
        "async 2x2x4/2: 14c21 38p5 47p7 48p2 50p2 51p6 52p4 53p5 55p6 57p0 58p7 59p7 79k33 80p0 "
        "86p6 87p3 93p4 128p1 131p7 132p6 142p5 143p4 144p1 154p3 165p3 167p2 168p1 177p5 179p5 "
        "180c52",
        // Rank 0 was replaced while it slept, and the group was split between the two.
        "sync 1x2x1/1: 2o1",
        // A process that was taken for lost pushed after its successor, and took its answer.
        "sync 1x2x5/1: 0p1 6c31 14h28 20h33 22r53 34o17 70p3",
        // A generation was opened on one shard only.
        "sync 2x2x1/1: 15o2 43k0",
        // While answers waited for the second copy, a member that was ahead got work before one
        // that had just come.
        "bounded-twice 3x3x5/1: 106o28 144k41 195e42",
        // The next step was made while the second copy acknowledged one, and was sent in its place.
        "sync-twice 3x1x2/1: 103s57 162c35 257e57 307p4",
        // Rank 0 slept while backup workers brought its step from one shard to the others.
        "backup2 3x3x1/1: 26o31 169s21 249p2",
        // A greeting reached the second copy after the next generation was announced, and the copy
        // refused it; no greeting of that generation followed.
        "bounded-twice 2x1x1/1: 4p4 40p3 75c11 88h23 166k47 272p2"})
    run(Schedule::parse(text), total);
}

TEST(Protocol, RunsTheScheduleThatIsAskedFor) {
  run_asked<SimulatedJob>("sync 2x2x3/1: 60k0 90o2 120c3");
}

TEST(Protocol, HoldsInRandomSchedules) {
  Outcome total;
  const int enough = run_random<SimulatedJob>(5000, total);
  if (enough == 0) return;
  EXPECT_GT(total.faults, 2 * enough);
  EXPECT_GT(total.restarts, enough / 2);
  EXPECT_GT(total.generations, enough);
  EXPECT_GT(total.count("published step"), enough);
  EXPECT_GT(total.count("left somebody out of step"), enough / 2);
  EXPECT_GT(total.count("held somebody back at step"), enough / 50);
  EXPECT_GT(total.count("lost its standby at step"), enough / 200);
}

}  // namespace
}  // namespace muster::ps::protocol
