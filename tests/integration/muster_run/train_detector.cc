#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::HasSubstr;

const std::string kMnist = MUSTER_SOURCE_DIR "/examples/data/mnist/";

// `muster run examples/ssd-mobilenet-v1.yaml` with the real trainer, on a few small canvases.
class DetectorRun : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(MUSTER_SOURCE_DIR "/examples/ssd-mobilenet-v1.yaml", job_.folder());
    auto digits =
        job_.muster({"data", "digits", "--output", "data/digits", "--train", "120", "--validation",
                     "16", "--size", "64", "--images", kMnist + "train-images-idx3-ubyte.gz",
                     "--labels", kMnist + "train-labels-idx1-ubyte.gz"});
    ASSERT_EQ(digits->wait(), kSuccess) << digits->output();
  }

  std::unique_ptr<Muster> run(const std::string& directory) {
    std::vector<std::string> arguments = {"run", "ssd-mobilenet-v1.yaml", "--directory", directory};
    for (const char* set :
         {"spec.training.model.classes=null",  // as many as the label map has
          "spec.training.data.train.tfRecord.imageSize=[64, 64]",
          "spec.training.data.validation.tfRecord.imageSize=[64, 64]",
          "spec.training.data.test.coco.imageSize=[64, 64]",
          "spec.training.data.train.augment=[{shift: {pixels: 4}}, {ssdRandomCrop: {}}]",
          "spec.training.batchSize=4", "spec.training.epochs=24",
          "spec.training.checkpoint.everySteps=10", "spec.training.learningRateSchedule=null"}) {
      arguments.emplace_back("--set");
      arguments.emplace_back(set);
    }
    return job_.muster(arguments);
  }

  Json json(const std::string& path) { return Json::parse(read_text(job_.folder() / path)); }

  ScriptJob job_{""};
};

// Statistics of batch normalization and random crops are those of the run that nobody disturbed.
TEST_F(DetectorRun, ends_with_the_same_weights_although_a_worker_and_a_ps_are_killed) {
  auto whole = run("whole");
  EXPECT_EQ(whole->wait(), kSuccess) << whole->output();
  const Json summary = json("whole/summary.json");
  EXPECT_EQ(summary["step"], 360);
  EXPECT_THAT(whole->output(), HasSubstr("test average precision 50"));
  EXPECT_THAT(read_text(job_.folder() / "whole/job.yaml"), HasSubstr("classes: 10\n"));

  auto disturbed = run("disturbed");
  await_file(job_.folder() / "disturbed" / "checkpoints" / "checkpoint");
  ::kill(job_.pid_of("disturbed", "worker-0"), SIGKILL);
  disturbed->await_output("worker-0 ended with exit code 137");
  ::kill(job_.pid_of("disturbed", "ps-1"), SIGKILL);
  EXPECT_EQ(disturbed->wait(), kSuccess) << disturbed->output();
  EXPECT_EQ(json("disturbed/summary.json")["weightsDigest"], summary["weightsDigest"]);
}

}  // namespace
}  // namespace muster::test
