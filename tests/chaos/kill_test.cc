#include <gtest/gtest.h>
#include <signal.h>

#include "common/file.h"
#include "tests/chaos/chaos_job.h"

namespace muster::chaos {
namespace {

// Several times in a run at any moment from the start to the end.
std::vector<double> moments(Chance& chance) {
  std::vector<double> times;
  const int count = 1 + static_cast<int>(chance.uniform(0, 3));
  for (int i = 0; i < count; ++i)
    times.push_back(chance.uniform(0, 1.1 * Undisturbed::get(kShort).seconds));
  std::sort(times.begin(), times.end());
  for (size_t i = times.size(); i-- > 1;) times[i] -= times[i - 1];
  return times;
}

// `chosen`: whom to kill at one of the moments.
template <class Choose>
void kill_and_compare(const std::string& name, Shape shape, Choose chosen) {
  shape.epochs = kShort;
  Undisturbed::get(kShort);
  for (int run = 0; run < Amount::get().runs && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    Chance chance(run);
    ChaosJob job(name, chance, shape);
    job.start();
    for (const double wait : moments(chance)) {
      ASSERT_NO_THROW(job.run_for(wait));
      if (job.finished()) break;
      for (const Replica& replica : chosen(job, chance)) job.signal(replica, SIGKILL);
    }
    expect_undisturbed_end(job);
    if (!shape.evaluator) continue;
    const Json evaluation =
        Document::load(job.storage() / "evaluations" / (std::to_string(steps_of(kShort)) + ".json"))
            .value();
    EXPECT_TRUE(evaluation["final"].get<bool>()) << job.story();
  }
}

class KillTest : public testing::TestWithParam<const char*> {};

TEST_P(KillTest, OfARoleAtAnyTimeCostsNoBit) {
  const std::string role = GetParam();
  Shape shape;
  shape.evaluator = role == "evaluator";
  kill_and_compare("kill-" + role, shape, [&](const ChaosJob& job, Chance& chance) {
    return std::vector<Replica>{chance.one_of(job.of(role))};
  });
}

INSTANTIATE_TEST_SUITE_P(Roles, KillTest, testing::Values("ps", "chief", "worker", "evaluator"),
                         [](const auto& info) { return std::string(info.param); });

TEST(KillReplicatedTest, OfAPsAtAnyTimeCostsNoBit) {
  Shape shape;
  shape.replication = 2;
  kill_and_compare("kill-replicated", shape, [](const ChaosJob& job, Chance& chance) {
    return std::vector<Replica>{chance.one_of(job.of("ps"))};
  });
}

TEST(KillReplicatedTest, OfAnyTwoCostsNoBit) {
  Shape shape;
  shape.ps = 3;
  shape.replication = 2;
  kill_and_compare("kill-two-replicated", shape, [](const ChaosJob& job, Chance& chance) {
    return std::vector<Replica>{chance.one_of(job.of("ps")), chance.one_of(job.replicas())};
  });
}

TEST(KillSeveralTest, TwoRolesAtOnceCostNoBit) {
  kill_and_compare("kill-two", {}, [](const ChaosJob& job, Chance& chance) {
    std::vector<std::string> roles = {"ps", "chief", "worker"};
    roles.erase(roles.begin() + static_cast<int>(chance.uniform(0, 3)));
    return std::vector<Replica>{chance.one_of(job.of(roles[0])), chance.one_of(job.of(roles[1]))};
  });
}

TEST(KillSeveralTest, AllAtOnceCostNoBit) {
  kill_and_compare("kill-all", {}, [](const ChaosJob& job, Chance&) { return job.replicas(); });
}

TEST(ResizeTest, AnotherNumberOfPsAfterAStopCostsNoBit) {
  const auto& undisturbed = Undisturbed::get();
  for (int run = 0; run < Amount::get().few() && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    Chance chance(run);
    Shape shape;
    for (const int ps : {1, 3}) {
      shape.ps = ps;
      ChaosJob job("resize", chance, shape);
      job.start();
      ASSERT_NO_THROW(job.run_for(chance.uniform(0.2, 0.5) * undisturbed.seconds));
      job.signal_all(chance.coin() ? SIGTERM : SIGKILL);
      job.await_all();
      shape.keep = true;
    }
    shape.ps = 2;
    ChaosJob job("resize", chance, shape);
    job.start();
    expect_undisturbed_end(job);
  }
}

}  // namespace
}  // namespace muster::chaos
