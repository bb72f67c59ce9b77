#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>

#include "common/exit_code.h"
#include "tests/chaos/chaos_job.h"

namespace muster::chaos {
namespace {

double pause_seconds() {
  return static_cast<double>(Amount::get().pause.count());
}

struct Paused {
  const char* role;
  int ps;
};

class PauseTest : public testing::TestWithParam<Paused> {};

// Nobody takes its place: the others declare it lost, nothing is published without it, and they
// take it in again.
TEST_P(PauseTest, WhoWakesUpRejoinsAndCostsNoBit) {
  const std::string role = GetParam().role;
  Chance chance;
  Shape shape;
  shape.ps = GetParam().ps;
  ChaosJob job((shape.ps == 0 ? "pause-collective-" : "pause-") + role, chance, shape);
  job.start();
  const Replica replica = chance.one_of(job.of(role));
  ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 5))));
  // Who says that it is lost, and in what words; of who is told of the chief any will do.
  const Replica witness = role == "chief" ? Replica{"worker", 0} : kChief;
  const std::string name = replica.first + " " + std::to_string(replica.second);
  const std::string lost = role == "chief" ? "waiting for the rendezvous" : name + " left";
  const std::string back = (role == "chief" ? "worker 0" : name) + " joined";
  const int before = job.count_in_log(witness, lost);
  job.signal(replica, SIGSTOP);
  ASSERT_TRUE(job.wait_for_log(witness, lost, before + 1)) << job.log(witness) << job.story();
  const auto published = job.checkpoints();
  ASSERT_NO_THROW(job.run_for(pause_seconds()));
  EXPECT_EQ(job.checkpoints(), published) << job.story();
  EXPECT_FALSE(job.finished());
  job.signal(replica, SIGCONT);
  EXPECT_TRUE(job.wait_for_log(kChief, back, 2)) << job.log(kChief) << job.story();
  expect_undisturbed_end(job);
  EXPECT_EQ(job.starts(replica), 1) << job.story();
  for (const std::string& checkpoint : job.checkpoints())
    EXPECT_TRUE(checkpoint.ends_with("-g1")) << checkpoint << job.log(kChief);
}

INSTANTIATE_TEST_SUITE_P(Roles, PauseTest,
                         testing::Values(Paused{"ps", 2}, Paused{"chief", 2}, Paused{"worker", 2},
                                         Paused{"chief", 0}, Paused{"worker", 0}),
                         [](const auto& info) {
                           const std::string role = info.param.role;
                           return info.param.ps == 0 ? "collective_" + role : role;
                         });

// It is of no group: nobody misses it, and it evaluates what there is when it wakes up.
TEST(PauseEvaluatorTest, TheJobEndsWithoutItAndItEvaluatesTheEnd) {
  Chance chance;
  Shape shape;
  shape.evaluator = true;
  ChaosJob job("pause-evaluator", chance, shape);
  job.start();
  ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 5))));
  job.signal(kEvaluator, SIGSTOP);
  ASSERT_NO_THROW(job.run_for(pause_seconds()));
  job.signal(kEvaluator, SIGCONT);
  expect_undisturbed_end(job);
  EXPECT_EQ(job.starts(kEvaluator), 1) << job.story();
  const Json evaluation =
      Document::load(job.storage() / "evaluations" / (std::to_string(steps_of(kLong)) + ".json"))
          .value();
  EXPECT_TRUE(evaluation["final"].get<bool>()) << job.story();
}

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
  ASSERT_NO_THROW(job.run_for(pause_seconds()));
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

// Its standby goes on, and is the one to say what the shards are when it wakes up.
TEST(ReplaceReplicatedTest, APsThatIsReplacedCostsNoBitAndRestoresNothing) {
  Chance chance;
  Shape shape;
  shape.relayed = true;
  shape.replication = 2;
  ChaosJob job("replace-replicated", chance, shape);
  job.start();
  const Replica replica = chance.one_of(job.of("ps"));
  ASSERT_TRUE(job.wait_for_checkpoints(1 + static_cast<size_t>(chance.uniform(0, 3))));
  ASSERT_TRUE(job.wait_for_log(kChief, "2 of 2 shards have a second copy")) << job.log(kChief);
  job.signal(replica, SIGSTOP);
  ASSERT_NO_THROW(job.run_for(chance.uniform(0, 1)));
  ASSERT_FALSE(job.finished());
  job.replace(replica);
  ASSERT_TRUE(job.wait_for_log(kChief, "goes on with its copy of shard")) << job.log(kChief);
  job.wake_replaced();
  expect_undisturbed_end(job);
  EXPECT_EQ(job.count_in_log(kChief, "opened from the beginning"), 1) << job.log(kChief);
  EXPECT_EQ(job.count_in_log(kChief, "opened from ckpt-"), 0) << job.log(kChief) << job.story();
}

}  // namespace
}  // namespace muster::chaos
