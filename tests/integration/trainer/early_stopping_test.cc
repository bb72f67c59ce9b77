#include <gmock/gmock.h>
#include <signal.h>

#include <cmath>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"
#include "trainer/checkpoint/store/store.h"

namespace muster::integration {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kSteps = 5000;  // an epoch

// The classes overlap, and there is little to learn after the first epochs.
std::string training_that_overfits() {
  std::string text = small_training(
      "optimizer: {learningRate: 0.001}\n"
      "evaluation: {}\n"
      "earlyStopping: {patience: 4, restoreBest: true}\n"
      "checkpoint: {everySteps: 500, bestOnly: {}}\n",
      40);
  text.replace(text.find("batchSize: 16"), 13, "batchSize: 4");
  for (size_t at = 0; (at = text.find("[64]", at)) != std::string::npos;)
    text.replace(at, 4, "[2]");
  return text;
}

// A process by itself on that training, in a folder of its own.
class EarlyAlone {
 public:
  explicit EarlyAlone(const std::string& name) : folder_(scratch() / name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_file_atomically(folder_ / "training.yaml", training_that_overfits());
  }
  Process start() const {
    return {{MUSTER_TRAINER, "--standalone", (folder_ / "training.yaml").string(), "--storage",
             (folder_ / "job").string()},
            {{"MUSTER_THREADS", "1"}},
            folder_ / "log",
            {}};
  }
  Json result() const { return Json::parse(read_file(folder_ / "job" / "result.json")); }
  bool has_evaluated(int epoch) const {
    return fs::exists(folder_ / "job" / "evaluations" / (std::to_string(kSteps * epoch) + ".json"));
  }
  std::string log() const { return read_file(folder_ / "log"); }
  checkpoint::Store store() const { return {folder_ / "job" / "checkpoints", 1}; }

 private:
  fs::path folder_;
};

// makeOrRestore: whoever starts goes on from the newest checkpoint, if there is one.
TEST(EarlyStoppingTest, KilledAndStartedAgainItEndsWhereItWouldHaveWithTheSameBits) {
  EarlyAlone undisturbed("undisturbed");
  ASSERT_EQ(undisturbed.start().wait(), kSuccess) << undisturbed.log();
  const Json expected = undisturbed.result();
  ASSERT_TRUE(expected["stoppedEarly"]);
  ASSERT_GT(expected["best"]["epoch"], 2);

  EarlyAlone killed("killed");
  const int epochs = expected["epochs"];
  int kills = 0;
  for (int epoch = 1; epoch < epochs; ++epoch) {
    Process process = killed.start();
    ASSERT_TRUE(eventually([&] { return killed.has_evaluated(epoch) || !process.running(); }));
    process.signal(SIGKILL);
    if (process.wait() == 128 + SIGKILL) ++kills;
  }
  EXPECT_GE(kills, epochs / 2);
  ASSERT_EQ(killed.start().wait(), kSuccess) << killed.log();
  const Json found = killed.result();
  for (const char* field : {"step", "epochs", "exportedStep", "weightsDigest", "stoppedEarly"})
    EXPECT_EQ(found[field], expected[field]) << field;
  for (const char* field : {"metric", "value", "step", "epoch"})
    EXPECT_EQ(found["best"][field], expected["best"][field]) << field;
  EXPECT_EQ(found["validation"], expected["validation"]);
  EXPECT_EQ(found["test"], expected["test"]);
  EXPECT_THAT(killed.log(), HasSubstr("going on from ckpt-"));
  EXPECT_THAT(killed.log(), HasSubstr("early stopping after epoch " + std::to_string(epochs)));
}

TEST(EarlyStoppingTest, OfAllCheckpointsTheBestAndTheFinalOneAreLeft) {
  EarlyAlone alone("best-only");
  ASSERT_EQ(alone.start().wait(), kSuccess) << alone.log();
  const Json result = alone.result();
  std::vector<uint64_t> steps;
  for (const auto& name : alone.store().list()) steps.push_back(name.step);
  EXPECT_THAT(steps, testing::ElementsAre(result["step"], result["best"]["step"]));
  double least = INFINITY;
  uint64_t best = 0;
  for (int epoch = 1; epoch <= result["epochs"]; ++epoch) {
    ASSERT_TRUE(alone.has_evaluated(epoch));
    const Json evaluation = Json::parse(read_file(scratch() / "best-only" / "job" / "evaluations" /
                                                  (std::to_string(kSteps * epoch) + ".json")));
    const double loss = evaluation["validation"]["loss"];
    if (loss < least) best = evaluation["step"];
    least = std::min(least, loss);
  }
  EXPECT_EQ(result["best"]["step"], best);
  EXPECT_EQ(result["best"]["value"], least);
}

TEST(EarlyStoppingTest, IsRefusedByNameWithParameterServers) {
  Job job("with-ps", training_that_overfits(), 1, 1);
  Process& chief = job.start("chief", 0);
  EXPECT_EQ(chief.wait(), kBadConfig);
  EXPECT_THAT(job.log("chief", 0), HasSubstr("evaluation: expected none with parameter servers"));
}

// An evaluator beside the training decides, also where rank 0 is killed on the way.
TEST(EarlyStoppingTest, EndsByWhatAnEvaluatorFindsAndExportsTheBest) {
  std::string text = small_training(
      "optimizer: {learningRate: 0.001}\n"
      "earlyStopping: {metric: validationAccuracy, patience: 3, minDelta: 0.01, restoreBest: "
      "true}\n"
      "checkpoint: {everySteps: 200, bestOnly: {metric: validationLoss}}\n",
      100000);
  Job job("early-stopping-evaluator", text, 1, 1, /*evaluator=*/true);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill("chief", 0);
  job.start("chief", 0);
  job.expect_success();
  const Json result = job.result();
  EXPECT_TRUE(result["stoppedEarly"]);
  const auto position =
      checkpoint::Store::read(job.folder() / std::string(result["checkpoint"])).manifest.position;
  const auto evaluation = [&](uint64_t step) {
    return Json::parse(read_file(job.folder() / "evaluations" / (std::to_string(step) + ".json")));
  };
  const auto& best = position.evaluations.best;
  ASSERT_TRUE(best);
  EXPECT_EQ(result["exportedStep"], best->step);
  EXPECT_EQ(evaluation(best->step)["validation"]["accuracy"], best->value);
  EXPECT_TRUE(evaluation(best->step)["final"]);
  EXPECT_LT(best->step, result["step"]);
  Process evaluate({MUSTER_TRAINER, "evaluate", "--checkpoint", job.folder().string()}, {},
                   job.folder() / "evaluate.log", {});
  EXPECT_EQ(evaluate.wait(), 0);
  EXPECT_THAT(read_file(job.folder() / "evaluate.log"),
              HasSubstr("ckpt-" + std::to_string(best->step) + "-"));
  // checkpoint.bestOnly goes by a metric of its own.
  const auto& kept = position.evaluations.kept;
  ASSERT_TRUE(kept);
  EXPECT_EQ(result["best"]["metric"], "validationLoss");
  EXPECT_EQ(result["best"]["step"], kept->step);
  EXPECT_TRUE(fs::exists(job.folder() / std::string(result["best"]["checkpoint"])));
}

TEST(EarlyStoppingTest, NeedsSomebodyWhoEvaluates) {
  Job job("early-stopping-nobody", small_training("earlyStopping: {patience: 3}\n"), 0, 0);
  Process& chief = job.start("chief", 0);
  EXPECT_EQ(chief.wait(), kBadConfig);
  EXPECT_THAT(job.log("chief", 0),
              HasSubstr("earlyStopping: expected `evaluation` within the training"));
}

}  // namespace
}  // namespace muster::integration
