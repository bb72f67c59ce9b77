#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

// `muster run examples/mnist-mlp.yaml`, or another one, with the real trainer, for one epoch.
class MnistRun : public testing::Test {
 protected:
  std::unique_ptr<Muster> run(const std::string& directory,
                              const std::vector<std::string>& sets = {},
                              const std::vector<std::string>& more = {},
                              const std::string& example = "mnist-mlp") {
    std::vector<std::string> arguments = {"run", MUSTER_SOURCE_DIR "/examples/" + example + ".yaml",
                                          "--directory", directory};
    std::vector<std::string> all = {"spec.training.epochs=1",
                                    "spec.training.checkpoint.everySteps=20"};
    all.insert(all.end(), sets.begin(), sets.end());
    for (const std::string& set : all) {
      arguments.push_back("--set");
      arguments.push_back(set);
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return job_.muster(arguments);
  }

  Json json(const std::string& path) { return Json::parse(read_text(job_.folder() / path)); }

  // Weights, and the loss of the whole last epoch, wherever it was interrupted.
  void expect_same_training(const std::string& one, const std::string& other) {
    const Json a = json(one + "/summary.json"), b = json(other + "/summary.json");
    EXPECT_EQ(a["weightsDigest"], b["weightsDigest"]);
    EXPECT_NEAR(a["trainLoss"].get<double>(), b["trainLoss"].get<double>(), 1e-9);
  }

  void await_first_checkpoint(const std::string& directory) {
    await_file(job_.folder() / directory / "checkpoints" / "checkpoint");
  }

  // Waits until the newest checkpoint is of a later step.
  void await_checkpoint_after(const std::string& directory, int64_t step) {
    const auto newest = [&] {
      const std::string name = read_text(job_.folder() / directory / "checkpoints" / "checkpoint");
      const size_t begin = name.find("ckpt-");
      return begin == std::string::npos ? 0 : std::stoll(name.substr(begin + 5));
    };
    for (int waited = 0; newest() <= step; ++waited) {
      ASSERT_LT(waited, 6000) << "no checkpoint after step " << step << " within a minute";
      ::poll(nullptr, 0, 10);
    }
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
  const Json progress = json("run/job.json")["status"]["progress"];
  EXPECT_EQ(progress["step"], progress["totalSteps"]) << progress;
  EXPECT_GT(summary["testAccuracy"], 0.93);
  EXPECT_GT(summary["validationAccuracy"], 0.93);
  EXPECT_THAT(summary["weightsDigest"].get<std::string>(), MatchesRegex("[0-9a-f]+"));
  for (const char* file : {"checkpoint", "model", "onnx"}) {
    EXPECT_TRUE(std::filesystem::exists(job_.directory() / summary[file].get<std::string>()));
  }
  auto evaluate = job_.muster({"evaluate", "--checkpoint", "run", "-o", "json"});
  EXPECT_EQ(evaluate->wait(), kSuccess) << evaluate->output();
  EXPECT_EQ(Json::parse(evaluate->output())["accuracy"], summary["testAccuracy"]);
  EXPECT_THAT(mnist->output(), HasSubstr("model/model.onnx"));
  // Names of pictures begin where the user is, not at the folder of the manifest.
  std::filesystem::copy_file(MUSTER_SOURCE_DIR "/tests/fixtures/images/grey.png",
                             job_.folder() / "grey.png");
  auto predict = job_.muster(
      {"predict", "--checkpoint", "run", "grey.png", "--classes", "10", "--draw", "drawn"});
  EXPECT_EQ(predict->wait(), kSuccess) << predict->output();
  const Json prediction = Json::parse(predict->output())["predictions"][0];
  EXPECT_EQ(prediction["picture"], "grey.png");
  EXPECT_EQ(prediction["classes"].size(), 10u);
  EXPECT_EQ(prediction["drawn"], "drawn/grey.png");
  EXPECT_TRUE(std::filesystem::exists(job_.folder() / "drawn/grey.png"));
}

// Devices, workers and parameter servers: the same batches, added up in the same order.
TEST_F(MnistRun, mirrored_multi_worker_and_parameter_server_end_with_the_same_weights) {
  auto servers = run("servers");
  EXPECT_EQ(servers->wait(), kSuccess) << servers->output();
  for (const std::string example : {"mnist-mirrored", "mnist-multiworker"}) {
    auto mnist = run(example, {}, {}, example);
    EXPECT_EQ(mnist->wait(), kSuccess) << mnist->output();
    const Json summary = json(example + "/summary.json");
    EXPECT_EQ(summary["step"], 782);
    EXPECT_GT(summary["testAccuracy"], 0.93);
    expect_same_training(example, "servers");
  }
  // One process that takes the same batches whole: to rounding.
  auto alone =
      run("alone", {"spec.training.devices=1", "spec.training.batchSize=64"}, {}, "mnist-mirrored");
  EXPECT_EQ(alone->wait(), kSuccess) << alone->output();
  EXPECT_NEAR(json("alone/summary.json")["trainLoss"].get<double>(),
              json("servers/summary.json")["trainLoss"].get<double>(), 1e-2);
}

TEST_F(MnistRun, finishes_although_a_worker_and_a_ps_are_killed) {
  auto mnist = run("run", {"spec.training.epochs=2"});
  await_first_checkpoint("run");
  ::kill(job_.pid_of("run", "worker-0"), SIGKILL);
  mnist->await_output("worker-0 ended with exit code 137");
  ::kill(job_.pid_of("run", "ps-0"), SIGKILL);
  EXPECT_EQ(mnist->wait(), kSuccess) << mnist->output();
  const Json status = job_.state()["status"];
  EXPECT_EQ(status["replicaStatuses"]["worker"]["restarts"], 1);
  EXPECT_EQ(status["replicaStatuses"]["ps"]["restarts"], 1);
  // The second one is of the same round where the worker was not ready again before.
  EXPECT_THAT(status["restarts"], testing::AnyOf(1, 2));
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
  expect_same_training("run", "whole");
}

TEST_F(MnistRun, resumed_after_being_killed_ends_with_the_same_weights) {
  const std::vector<std::string> augmented = {
      "spec.training.data.train.augment=[{shift: {pixels: 2}}]"};
  auto whole = run("whole", augmented);
  EXPECT_EQ(whole->wait(), kSuccess) << whole->output();

  auto first = run("run", augmented);
  await_first_checkpoint("run");
  first->signal(SIGKILL);
  EXPECT_EQ(first->wait(), 137);
  auto second = run("run", augmented);
  EXPECT_EQ(second->wait(), kSuccess) << second->output();
  expect_same_training("run", "whole");
}

TEST_F(MnistRun, that_has_succeeded_trains_on_to_the_weights_of_a_longer_training) {
  auto whole = run("whole", {"spec.training.epochs=2"});
  EXPECT_EQ(whole->wait(), kSuccess) << whole->output();
  auto first = run("parts");
  EXPECT_EQ(first->wait(), kSuccess) << first->output();
  auto refused = run("parts", {"spec.training.epochs=2"});
  EXPECT_EQ(refused->wait(), kBadInput);
  EXPECT_THAT(refused->output(),
              HasSubstr("to train on by it, give it more epochs and --continue"));
  auto unchanged = run("parts", {}, {"--continue"});
  EXPECT_EQ(unchanged->wait(), kSuccess);
  EXPECT_THAT(unchanged->output(), HasSubstr("It had finished already"));
  auto no_more = run("parts", {"spec.training.optimizer.learningRate=0.5"}, {"--continue"});
  EXPECT_EQ(no_more->wait(), kBadInput);
  EXPECT_THAT(no_more->output(), HasSubstr("expected more epochs than the 1 epoch that the "
                                           "job has been trained for, found 1 epoch"));
  auto second = run("parts", {"spec.training.epochs=2"}, {"--continue"});
  second->await_output("mnist-mlp: trains on in parts");
  await_checkpoint_after("parts", 782);
  second->signal(SIGINT);  // the ps must not take the first epoch's end for the job's
  EXPECT_EQ(second->wait(), 130) << second->output();
  auto third = run("parts", {"spec.training.epochs=2"});
  EXPECT_EQ(third->wait(), kSuccess) << third->output();
  expect_same_training("parts", "whole");
  EXPECT_EQ(json("parts/summary.json")["step"], 1564);
  EXPECT_EQ(json("parts/summary.json")["testAccuracy"], json("whole/summary.json")["testAccuracy"]);
}

TEST_F(MnistRun, that_stop_when_has_ended_trains_on_without_it) {
  auto whole = run("whole", {"spec.training.epochs=2"});
  EXPECT_EQ(whole->wait(), kSuccess) << whole->output();
  auto first = run("parts", {"spec.training.epochs=2", "spec.training.stopWhen.metric=trainLoss",
                             "spec.training.stopWhen.atMost=5"});
  EXPECT_EQ(first->wait(), kSuccess) << first->output();
  EXPECT_EQ(json("parts/summary.json")["step"], 782);
  auto second = run("parts", {"spec.training.epochs=2"}, {"--continue"});
  EXPECT_EQ(second->wait(), kSuccess) << second->output();
  expect_same_training("parts", "whole");
  EXPECT_TRUE(json("parts/summary.json").value("reached", Json()).is_null());
}

TEST_F(MnistRun, interrupted_it_tells_of_its_newest_checkpoint) {
  auto first = run("run");
  await_first_checkpoint("run");
  first->signal(SIGINT);
  EXPECT_EQ(first->wait(), 130) << first->output();
  const Json summary = json("run/summary.json");
  EXPECT_EQ(summary["state"], "Suspended");
  const std::string checkpoint = summary["checkpoint"];
  EXPECT_THAT(checkpoint, HasSubstr("checkpoints/ckpt-" + summary["step"].dump() + "-g"));
  EXPECT_TRUE(std::filesystem::exists(job_.directory() / checkpoint / "manifest.json"));
}

// Training has ended, so that the change has no effect but on what evaluates.
TEST_F(MnistRun, whose_evaluation_was_interrupted_ends_with_a_changed_manifest_too) {
  auto first = run("run");
  await_first_checkpoint("run");
  const pid_t evaluator = job_.pid_of("run", "evaluator-0");
  ::kill(evaluator, SIGSTOP);
  first->await_output("chief-0 succeeded");
  first->signal(SIGKILL);
  ASSERT_EQ(first->wait(), 137) << first->output();
  ::kill(evaluator, SIGKILL);
  auto second = run("run", {"spec.training.batchSize=64"});
  EXPECT_EQ(second->wait(), kSuccess) << second->output();
  const Json summary = json("run/summary.json");
  EXPECT_EQ(summary["step"], 782);
  EXPECT_GT(summary["testAccuracy"], 0.9) << summary;
}

TEST_F(MnistRun, refuses_a_manifest_that_cannot_go_on_before_it_touches_anything) {
  // Long enough to be interrupted before its end.
  const std::string epochs = "spec.training.epochs=4";
  auto first = run("run", {epochs});
  await_first_checkpoint("run");
  first->signal(SIGINT);
  EXPECT_EQ(first->wait(), 130) << first->output();
  const std::string state = read_text(job_.directory() / "job.json");
  const std::string manifest = read_text(job_.directory() / "job.yaml");
  const std::pair<std::string, const char*> cases[] = {
      {"spec.training.model.name=mnist-sigmoid",
       "spec.training.model.name: expected \"mnist-mlp\" (a string), as in ckpt-"},
      {"spec.training.batchSize=1000003",
       "spec.training.batchSize: expected 32 (an integer), as in ckpt-"},
      {"spec.training.optimizer.name=momentum",
       "spec.training.optimizer.name: expected \"adam\" (a string), as in ckpt-"}};
  for (const auto& [set, words] : cases) {
    auto refused = run("run", {epochs, set});
    EXPECT_EQ(refused->wait(), kBadInput) << refused->output();
    EXPECT_THAT(refused->output(), HasSubstr(words));
  }
  EXPECT_EQ(read_text(job_.directory() / "job.json"), state);
  EXPECT_EQ(read_text(job_.directory() / "job.yaml"), manifest);

  auto other = run("run", {epochs, "spec.training.seed=7"});
  EXPECT_EQ(other->wait(), kSuccess) << other->output();
  EXPECT_THAT(other->output(), HasSubstr("spec.training.seed was 1, is 7 since ckpt-"));
}

TEST_F(MnistRun, a_job_that_diverged_is_mended_by_a_changed_manifest) {
  const std::string sgd = "spec.training.optimizer.name=sgd";
  auto diverged = run("run", {sgd, "spec.training.optimizer.learningRate=1000000"});
  EXPECT_EQ(diverged->wait(), kDiverged) << diverged->output();
  EXPECT_THAT(diverged->output(),
              HasSubstr("--set spec.training.optimizer.learningRate=100000 --retry"));
  EXPECT_THAT(diverged->output(), Not(HasSubstr("-nan")));
  const Json summary = json("run/summary.json");
  EXPECT_EQ(summary["state"], "Failed");
  // Of the rate that diverged, whatever the manifest says now.
  auto told = run("run", {sgd});
  EXPECT_EQ(told->wait(), kDiverged) << told->output();
  EXPECT_THAT(told->output(),
              HasSubstr("--set spec.training.optimizer.learningRate=100000 --retry"));
  auto other = run("run", {"spec.training.optimizer.name=adam"});
  EXPECT_EQ(other->wait(), kDiverged) << other->output();
  EXPECT_THAT(other->output(), AllOf(HasSubstr("with the optimizer as it is now: muster run"),
                                     Not(HasSubstr("learningRate="))));
  auto mended = run("run", {sgd, "spec.training.optimizer.learningRate=0.01"}, {"--retry"});
  EXPECT_EQ(mended->wait(), kSuccess) << mended->output();
  EXPECT_EQ(json("run/summary.json")["step"], 782);
}

TEST_F(MnistRun, names_a_worker_that_is_stopped) {
  auto mnist = run("run", {"spec.training.epochs=2"});
  await_first_checkpoint("run");
  const pid_t worker = job_.pid_of("run", "worker-0");
  ::kill(worker, SIGSTOP);
  mnist->await_output("worker-0 has not answered");
  ::kill(worker, SIGCONT);
  EXPECT_EQ(mnist->wait(), kSuccess) << mnist->output();
}

}  // namespace
}  // namespace muster::test
