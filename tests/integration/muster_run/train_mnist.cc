#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

// `muster run examples/mnist-mlp.yaml` with the real trainer, for one epoch.
class MnistRun : public testing::Test {
 protected:
  std::unique_ptr<Muster> run(const std::string& directory,
                              const std::vector<std::string>& sets = {}) {
    std::vector<std::string> arguments = {"run", MUSTER_SOURCE_DIR "/examples/mnist-mlp.yaml",
                                          "--directory", directory};
    std::vector<std::string> all = {"spec.training.epochs=1",
                                    "spec.training.checkpoint.everySteps=20"};
    all.insert(all.end(), sets.begin(), sets.end());
    for (const std::string& set : all) {
      arguments.push_back("--set");
      arguments.push_back(set);
    }
    return job_.muster(arguments);
  }

  Json json(const std::string& path) { return Json::parse(read_text(job_.folder() / path)); }

  pid_t pid_of(const std::string& directory, const std::string& replica) {
    auto status = job_.muster({"status", directory, "-o", "json"});
    EXPECT_EQ(status->wait(), kSuccess) << status->output();
    const Json parsed = Json::parse(status->output());
    for (const Json& one : parsed["replicas"]) {
      if (one["name"] == replica) return one["pid"];
    }
    throw std::runtime_error("no replica " + replica);
  }

  void await_first_checkpoint(const std::string& directory) {
    await_file(job_.folder() / directory / "checkpoints" / "checkpoint");
  }

  ScriptJob job_{""};
};

TEST_F(MnistRun, learns_and_says_so) {
  auto mnist = run("run");
  EXPECT_EQ(mnist->wait(), kSuccess) << mnist->output();
  EXPECT_THAT(mnist->output(), HasSubstr("test accuracy"));
  const Json summary = json("run/summary.json");
  EXPECT_EQ(summary["state"], "Succeeded");
  EXPECT_EQ(summary["step"], 782);  // 50,000 images, 64 a step, the remainder too
  EXPECT_GT(summary["testAccuracy"], 0.93);
  EXPECT_GT(summary["validationAccuracy"], 0.93);
  EXPECT_THAT(summary["weightsDigest"].get<std::string>(), MatchesRegex("[0-9a-f]+"));
  for (const char* file : {"checkpoint", "model"}) {
    EXPECT_TRUE(std::filesystem::exists(job_.directory() / summary[file].get<std::string>()));
  }
  auto evaluate = job_.muster({"evaluate", "--checkpoint", "run", "-o", "json"});
  EXPECT_EQ(evaluate->wait(), kSuccess) << evaluate->output();
  EXPECT_EQ(Json::parse(evaluate->output())["accuracy"], summary["testAccuracy"]);
}

TEST_F(MnistRun, finishes_although_a_worker_and_a_ps_are_killed) {
  auto mnist = run("run", {"spec.training.epochs=2"});
  await_first_checkpoint("run");
  ::kill(pid_of("run", "worker-0"), SIGKILL);
  mnist->await_output("worker-0 ended with exit code 137");
  ::kill(pid_of("run", "ps-0"), SIGKILL);
  EXPECT_EQ(mnist->wait(), kSuccess) << mnist->output();
  EXPECT_EQ(job_.state()["status"]["restarts"], 2);
  EXPECT_EQ(json("run/summary.json")["step"], 1564);
}

TEST_F(MnistRun, resumed_after_an_interrupt_ends_with_the_same_weights) {
  auto whole = run("whole");
  EXPECT_EQ(whole->wait(), kSuccess) << whole->output();

  auto first = run("run");
  await_first_checkpoint("run");
  first->signal(SIGINT);
  EXPECT_EQ(first->wait(), 130) << first->output();
  auto second = run("run");
  EXPECT_EQ(second->wait(), kSuccess) << second->output();
  EXPECT_EQ(json("run/summary.json")["weightsDigest"], json("whole/summary.json")["weightsDigest"]);
}

TEST_F(MnistRun, resumed_after_being_killed_ends_with_the_same_weights) {
  auto whole = run("whole");
  EXPECT_EQ(whole->wait(), kSuccess) << whole->output();

  auto first = run("run");
  await_first_checkpoint("run");
  first->signal(SIGKILL);
  EXPECT_EQ(first->wait(), 137);
  auto second = run("run");
  EXPECT_EQ(second->wait(), kSuccess) << second->output();
  EXPECT_EQ(json("run/summary.json")["weightsDigest"], json("whole/summary.json")["weightsDigest"]);
}

TEST_F(MnistRun, stops_on_data_that_is_missing_and_names_it) {
  auto mnist = run("run", {"spec.training.data.train.idx.images=no/such/file"});
  EXPECT_EQ(mnist->wait(), kBadInput) << mnist->output();
  EXPECT_THAT(mnist->output(), HasSubstr("no/such/file"));
}

}  // namespace
}  // namespace muster::test
