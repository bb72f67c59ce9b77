#include <gmock/gmock.h>
#include <signal.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;

constexpr const char* kByTraining = "stopWhen: {metric: trainLoss, atMost: 0.02}\n";

std::string training_that_stops(const std::string& more) {
  std::string text = small_training("optimizer: {learningRate: 0.0005}\n" + more, 60);
  text.replace(text.find("samples: 20000"), 14, "samples: 4000");
  return text;
}

void expect_reached(const Json& result) {
  ASSERT_TRUE(result["reached"].is_object()) << result;
  EXPECT_EQ(result["reached"]["metric"], "trainLoss");
  EXPECT_LE(result["reached"]["value"], 0.02);
  EXPECT_EQ(result["reached"]["value"], result["trainLoss"]);
  EXPECT_EQ(result["reached"]["step"], result["step"]);
  EXPECT_GT(result["epochs"], 1);
  EXPECT_LT(result["epochs"], 60);
}

constexpr char kAnotherGeneration[] = "the end needs another generation, in which members compare";

struct Group {
  const char* name;
  int ps;
  const char* synchronization;
  Job::Environment environment = {};
};

class StopWhenTest : public testing::TestWithParam<Group> {};

TEST_P(StopWhenTest, EndsWhenTheTrainingLossIsThere) {
  const Group& group = GetParam();
  Job job(std::string("stop-when-") + group.name,
          training_that_stops(kByTraining + std::string(group.synchronization)), group.ps, 1);
  job.environment = group.environment;
  job.start_all();
  job.expect_success();
  const Json result = job.result();
  ASSERT_TRUE(result["reached"].is_object()) << result;
  EXPECT_LE(result["reached"]["value"], 0.02);
  EXPECT_LT(result["epochs"], 60);
  EXPECT_THAT(job.log("chief", 0), HasSubstr("stopWhen ends the training: trainLoss is"));
  EXPECT_THAT(job.log("chief", 0), Not(HasSubstr(kAnotherGeneration)));
  // A job that has ended so has nothing left to train.
  job.start("chief", 0);
  EXPECT_EQ(job.at("chief", 0).wait(), kSuccess);
  EXPECT_EQ(job.result()["step"], result["step"]);
}

INSTANTIATE_TEST_SUITE_P(Groups, StopWhenTest,
                         testing::Values(Group{"ps", 2, ""},
                                         Group{"async", 1, "synchronization: {policy: async}\n"},
                                         Group{"collective", 0, ""}, Group{"tcp", 0, "", kByTcp}),
                         [](const auto& info) { return std::string(info.param.name); });

// Whoever is killed, the decision follows from the state that the others have or the checkpoint
// has.
TEST(StopWhenTest, IsTheSameWhoeverIsKilled) {
  for (const int ps : {0, 2}) {
    const std::string name = "stop-when-killed-" + std::to_string(ps);
    const std::string text =
        training_that_stops(kByTraining + std::string("checkpoint: {everySteps: 50}\n"));
    Job undisturbed(name + "-not", text, ps, 1);
    undisturbed.start_all();
    undisturbed.expect_success();
    const Json expected = undisturbed.result();
    expect_reached(expected);
    Job job(name, text, ps, 1);
    job.start_all();
    ASSERT_TRUE(job.wait_for_checkpoints(1));
    job.kill("chief", 0);
    job.start("chief", 0);
    ASSERT_TRUE(job.wait_for_checkpoints(2));
    job.kill("worker", 0);
    job.start("worker", 0);
    job.expect_success();
    for (const char* field : {"step", "epochs", "weightsDigest", "reached"})
      EXPECT_EQ(job.result()[field], expected[field]) << field << " with " << ps << " ps";
  }
}

// Members that hold a state each do not foresee that end: they compare their states in a generation
// of its own.
TEST(StopWhenTest, MembersCompareTheirStatesAtAnEndThatTheyDoNotForesee) {
  std::string text = training_that_stops(
      "stopWhen: {metric: validationAccuracy, atLeast: 0.9}\n"
      "checkpoint: {everySteps: 1009, everySeconds: null}\n");  // it is known between two of them
  text.replace(text.find("epochs: 60"), 10, "epochs: 100000");
  // The evaluation may become known just while a checkpoint is taken, after a comparison.
  std::string log;
  for (int attempt = 0; attempt < 3 && log.find(kAnotherGeneration) == std::string::npos;
       ++attempt) {
    Job job("stop-when-evaluator-tcp-" + std::to_string(attempt), text, 0, 1, /*evaluator=*/true);
    job.environment = kByTcp;
    job.start_all();
    job.expect_success();
    log = job.log("chief", 0);
  }
  EXPECT_THAT(log, HasSubstr(kAnotherGeneration));
}

TEST(StopWhenTest, EndsByWhatAnEvaluatorFinds) {
  std::string text = training_that_stops(
      "stopWhen: {metric: validationAccuracy, atLeast: 0.9}\ncheckpoint: {everySteps: 100}\n");
  text.replace(text.find("epochs: 60"), 10, "epochs: 100000");
  Job job("stop-when-evaluator", text, 1, 1, /*evaluator=*/true);
  job.start_all();
  job.expect_success();
  const Json reached = job.result()["reached"];
  ASSERT_TRUE(reached.is_object());
  EXPECT_GE(reached["value"], 0.9);
  const Json evaluation =
      Json::parse(read_file(job.folder() / "evaluations" / (reached["step"].dump() + ".json")));
  EXPECT_EQ(evaluation["validation"]["accuracy"], reached["value"]);
}

TEST(StopWhenTest, NeedsSomebodyWhoEvaluates) {
  Job job("stop-when-nobody",
          training_that_stops("stopWhen: {metric: validationAccuracy, atLeast: 0.9}\n"), 0, 0);
  Process& chief = job.start("chief", 0);
  EXPECT_EQ(chief.wait(), kBadConfig);
  EXPECT_THAT(job.log("chief", 0),
              HasSubstr("stopWhen: expected `evaluation` within the training"));
}

}  // namespace
}  // namespace muster::integration
