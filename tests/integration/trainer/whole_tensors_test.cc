// Jobs whose optimizer needs whole tensors: whoever updates them, the bits are the same.

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/integration/trainer/job.h"
#include "tests/unit/common/net/listener.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;

struct Optimizer {
  const char* name;
  const char* training;
};

constexpr Optimizer kLamb{"lamb", "optimizer: {name: lamb, learningRate: 0.01}\n"};
// With a third slot, by which everything is evaluated and which is exported.
constexpr Optimizer kAveraged{
    "averaged",
    "optimizer: {name: rmsprop, epsilon: 1, learningRate: 0.01, momentum: 0.9, clipNorm: 0.5, "
    "l2: {factor: 0.0001}, ema: {decay: 0.99}}\n"};

// Two logical replicas each time, in one process if there is no worker.
Json result_of(const std::string& name, const std::string& training, int ps, int workers,
               const Job::Environment& environment = {}, bool evaluator = false) {
  Job job(name, training, ps, workers, evaluator);
  job.environment = environment;
  job.start_all();
  job.expect_success();
  Json result = job.result();
  result.update(job.evaluation());
  return result;
}

void expect_same(const Json& result, const Json& expected) {
  for (const char* field : {"step", "weightsDigest", "trainLoss"})
    EXPECT_EQ(result[field], expected[field]) << field;
}

class WholeTensorsTest : public testing::TestWithParam<Optimizer> {
 protected:
  static std::string named(const std::string& what) {
    return std::string(GetParam().name) + "-" + what;
  }
};

INSTANTIATE_TEST_SUITE_P(Optimizers, WholeTensorsTest, testing::Values(kLamb, kAveraged),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(WholeTensorsTest, WhoeverUpdatesThemTheBitsAreTheSame) {
  // A machine with a GPU may have no second one.
  const std::string training = small_training(GetParam().training) + "device: cpu\n";
  const Json alone = result_of(named("alone"), training + "devices: 2\n", 0, 0);
  EXPECT_LT(alone["trainLoss"].get<double>(), 1.0);
  for (const int ps : {1, 2, 5}) {
    SCOPED_TRACE(std::to_string(ps) + " parameter servers");
    const bool evaluator = ps == 2;
    const Json result =
        result_of(named("ps-" + std::to_string(ps)), training, ps, 1, {}, evaluator);
    expect_same(result, alone);
    EXPECT_EQ(result["validation"], alone["validation"]);
  }
  expect_same(result_of(named("collective"), training, 0, 1), alone);
  expect_same(result_of(named("tcp"), training, 0, 1, {{"MUSTER_SHARED_MEMORY", "0"}}), alone);
}

TEST_P(WholeTensorsTest, LostAndStoppedTheyGoOnWithTheSameBitsOnAnotherNumberOfServers) {
  const std::string training =
      long_training(std::string(GetParam().training) + "checkpoint: {everySteps: 150, keep: 50}\n");
  const Json undisturbed = result_of(named("undisturbed"), training, 1, 1);
  {
    Job job(named("disturbed"), training, 2, 1);
    job.environment = {{"MUSTER_REPLICATION", "2"}};
    job.start_all();
    const auto says = [&](const std::string& text) {
      return eventually([&] { return job.log("chief", 0).find(text) != std::string::npos; });
    };
    ASSERT_TRUE(says("2 of 2 shards have a second copy")) << job.log("chief", 0);
    job.kill("ps", 0);
    ASSERT_TRUE(says("goes on with its copy of shard 0")) << job.log("chief", 0);
    job.start("ps", 0);
    ASSERT_TRUE(job.wait_for_checkpoints(1));
    const std::vector<Job::Replica> all{{"worker", 0}, {"chief", 0}, {"ps", 0}, {"ps", 1}};
    for (const auto& [role, index] : all) job.at(role, index).signal(SIGTERM);
    for (const auto& [role, index] : all)
      EXPECT_EQ(job.at(role, index).wait(), 143) << job.log(role, index);
    EXPECT_FALSE(std::filesystem::exists(job.folder() / "result.json"));
  }
  Job again(named("disturbed"), training, 5, 1, false, true);
  again.start_all();
  again.expect_success();
  EXPECT_THAT(again.log("chief", 0), HasSubstr("opened from ckpt-"));
  expect_same(again.result(), undisturbed);
}

// A member by itself has nobody to be behind of, so that its pushes make the updates of a process
// that trains alone.
TEST_P(WholeTensorsTest, AsynchronouslyTheyGetTheSameUpdates) {
  const std::string training = small_training(GetParam().training, 1);
  const Json alone = result_of(named("async-alone"), training, 0, 0);
  const Json result =
      result_of(named("async"), training + "synchronization: {policy: async}\n", 2, 0);
  for (const char* field : {"step", "weightsDigest", "validation"})
    EXPECT_EQ(result[field], alone[field]) << field;
}

}  // namespace
}  // namespace muster::integration
