#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "common/exit_code.h"
#include "tests/chaos/chaos_job.h"

namespace muster::chaos {
namespace {

class PauseTest : public testing::TestWithParam<const char*> {};

// Nobody takes its place: the others declare it lost, and take it in again.
TEST_P(PauseTest, WhoWakesUpRejoinsAndCostsNoBit) {
  const auto& undisturbed = Undisturbed::get();
  Chance chance;
  Shape shape;
  shape.evaluator = std::string(GetParam()) == "evaluator";
  ChaosJob job(std::string("pause-") + GetParam(), chance, shape);
  job.start();
  const Replica replica = chance.one_of(job.of(GetParam()));
  ASSERT_NO_THROW(job.run_for(chance.uniform(0.2, 0.8) * undisturbed.seconds));
  job.signal(replica, SIGSTOP);
  ASSERT_NO_THROW(job.run_for(static_cast<double>(Amount::get().pause.count())));
  job.signal(replica, SIGCONT);
  expect_undisturbed_end(job);
}

INSTANTIATE_TEST_SUITE_P(Roles, PauseTest, testing::Values("ps", "chief", "worker", "evaluator"),
                         [](const auto& info) { return std::string(info.param); });

class ReplaceTest : public testing::TestWithParam<const char*> {};

std::string generation_of(const std::string& checkpoint) {
  return checkpoint.substr(checkpoint.rfind('g') + 1);
}

std::vector<std::string> of_generation(const ChaosJob& job, const std::string& generation) {
  std::vector<std::string> found;
  for (const std::string& name : job.checkpoints())
    if (generation_of(name) == generation) found.push_back(name);
  return found;
}

// Another takes its place while it sleeps, somewhere else; then it wakes up.
TEST_P(ReplaceTest, WhoWakesUpInAnothersPlacePublishesNothingAndCostsNoBit) {
  Chance chance;
  Shape shape;
  shape.relayed = true;
  ChaosJob job(std::string("replace-") + GetParam(), chance, shape);
  job.start();
  const Replica replica = chance.one_of(job.of(GetParam()));
  // By progress: how long a job takes depends on what else the machine does.
  ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 3))));
  job.signal(replica, SIGSTOP);
  const size_t before = job.checkpoints().size();
  const std::string generation = generation_of(job.checkpoints().front());
  ASSERT_NO_THROW(job.run_for(static_cast<double>(Amount::get().pause.count())));
  job.replace(replica);
  // With a new chief or ps a generation begins; with a worker the old one goes on.
  ASSERT_TRUE(job.wait_for_checkpoints(before + 1)) << job.story();
  const auto published = of_generation(job, generation);
  const auto code = job.wake_replaced();
  expect_undisturbed_end(job);
  if (std::string(GetParam()) == "worker") return;
  EXPECT_EQ(of_generation(job, generation), published) << job.story();
  if (std::string(GetParam()) == "chief") {
    EXPECT_EQ(code, kUnavailable) << job.story();
  }
}

INSTANTIATE_TEST_SUITE_P(Roles, ReplaceTest, testing::Values("ps", "chief", "worker"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::chaos
