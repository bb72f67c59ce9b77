#include <gmock/gmock.h>

#include <cstdlib>

#include "common/documents/json.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/net/http_get.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "tests/unit/common/net/listener.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/checkpoint/start/initial_parameters.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/loop/commands/on_samples.h"
#include "trainer/loop/roles/leader.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

Json train_alone(const fs::path& folder, const fs::path& training) {
  Json result;
  const group::Membership membership = alone(folder, training);
  EXPECT_EQ(run_alone(membership, {}, &result), kSuccess);
  return result;
}

// Stops after so many steps, as a signal would.
void train_a_while(const fs::path& folder, const fs::path& training, uint64_t steps) {
  const group::Membership membership = alone(folder, training);
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  metrics::Reporter reporter("", "chief", 0);
  auto store = open_store(membership, assembly);
  const auto from = store->to_resume();
  Leader leader(membership, assembly, reporter, std::move(store), {}, {});
  LocalSynchronizer synchronizer(assembly, from ? &*from : nullptr,
                                 from ? from->manifest.generation + 1 : 1);
  for (uint64_t i = 0; i < steps; ++i) synchronizer.step();
  leader.save(synchronizer);
}

class AloneTest : public testing::TestWithParam<const char*> {};

TEST_P(AloneTest, GoesOnFromACheckpointWithTheSameBits) {
  const fs::path whole = fresh_folder("whole");
  const Json expected = train_alone(whole, write_training(whole, GetParam()));
  const fs::path broken = fresh_folder("broken");
  const fs::path training = write_training(broken, GetParam());
  train_a_while(broken, training, 4);
  train_a_while(broken, training, 3);
  const Json found = train_alone(broken, training);
  EXPECT_EQ(found["step"], expected["step"]);
  EXPECT_EQ(found["weightsDigest"], expected["weightsDigest"]);
  EXPECT_EQ(found["trainLoss"], expected["trainLoss"]);
}

INSTANTIATE_TEST_SUITE_P(
    Trainings, AloneTest,
    testing::Values("epochs: 2\n", "steps: 13\noptimizer: {name: momentum}\n",
                    "epochs: 3\ngradientAccumulation: 3\n",
                    "epochs: 2\noptimizer: {name: adamw}\nlearningRateSchedule: {cosine: "
                    "{decaySteps: 20}, warmupSteps: 3}\n",
                    "epochs: 2\ndropRemainder: true\n",
                    "epochs: 2\noptimizer: {name: rmsprop, l2: {factor: 0.01}, clipNorm: 0.5, ema: "
                    "{decay: 0.9}}\n",
                    "epochs: 2\ndevices: 2\noptimizer: {name: sgd, l2: {factor: 0.01}, clipValue: "
                    "0.01, ema: {decay: 0.9}}\n",
                    "epochs: 2\nsynchronization: {wire: bfloat16}\n"));

TEST(AloneProcessTest, LearnsAndWritesWhatOthersRead) {
  const fs::path folder = fresh_folder("learns");
  const Json result = train_alone(folder, write_training(folder, "epochs: 30\n"));
  const fs::path job = folder / "job";
  EXPECT_GT(result["validation"]["accuracy"].get<double>(), 0.8);
  for (const char* field :
       {"step", "epochs", "trainLoss", "trainAccuracy", "weightsDigest", "checkpoint", "model",
        "trainSeconds", "examplesPerSecond", "secondsPerBatch"})
    EXPECT_TRUE(result.contains(field)) << field;
  const Json evaluation = Document::load(job / "evaluations" / "330.json").value();
  EXPECT_TRUE(evaluation["final"].get<bool>());
  EXPECT_TRUE(evaluation.contains("test"));
  EXPECT_TRUE(fs::exists(job / result["model"].get<std::string>()));
  const Json evaluated = evaluate_checkpoint(job / result["checkpoint"].get<std::string>(), "test");
  EXPECT_EQ(evaluated["accuracy"], evaluation["test"]["accuracy"]);
  const Json predicted =
      predict_checkpoint(job / result["checkpoint"].get<std::string>(), "test", {0, 7});
  EXPECT_EQ(predicted["predictions"].size(), 2u);
}

TEST(AloneProcessTest, ATrainingThatIsDoneIsNotDoneAgain) {
  const fs::path folder = fresh_folder("done");
  const fs::path training = write_training(folder, "epochs: 1\n");
  const Json first = train_alone(folder, training);
  const Json second = train_alone(folder, training);
  EXPECT_EQ(second["weightsDigest"], first["weightsDigest"]);
  EXPECT_EQ(second["checkpoint"], first["checkpoint"]);
  EXPECT_EQ(second["trainLoss"], first["trainLoss"]);
  for (const char* rate : {"trainSeconds", "examplesPerSecond", "secondsPerBatch"}) {
    EXPECT_GT(first[rate], 0) << rate;
    EXPECT_EQ(second[rate], first[rate]) << rate;
  }
  const Json longer = train_alone(folder, write_training(folder, "epochs: 2\n"));
  EXPECT_EQ(longer["step"], 22);
}

TEST(AloneProcessTest, LeavesNoOnnxOfAnEarlierModel) {
  const fs::path folder = fresh_folder("onnx");
  const fs::path onnx = folder / "job/model/model.onnx";
  EXPECT_EQ(train_alone(folder, write_training(folder, "epochs: 1\n"))["onnx"], "model/model.onnx");
  EXPECT_TRUE(fs::exists(onnx));
  const Json longer =
      train_alone(folder, write_training(folder, "epochs: 2\nexport: {onnx: false}\n"));
  EXPECT_EQ(longer["step"], 22);
  EXPECT_FALSE(longer.contains("onnx"));
  EXPECT_FALSE(fs::exists(onnx));
}

TEST(AloneProcessTest, ASnapshotIsOfItsStepWhateverFollows) {
  const fs::path folder = fresh_folder("snapshot");
  const fs::path training = write_training(folder, "steps: 9\n");
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  const auto step = [&] { synchronizer.step(); };
  const auto files = [&](Snapshot& snapshot, const std::string& name) {
    checkpoint::Manifest manifest;
    fs::create_directory(folder / name);
    snapshot.write(folder / name, manifest, 0);
    return manifest.files;
  };
  step();
  const auto now = files(*synchronizer.snapshot(), "now");
  const auto snapshot = synchronizer.snapshot();
  step();
  EXPECT_EQ(files(*snapshot, "later"), now);
  EXPECT_NE(files(*synchronizer.snapshot(), "next"), now);
}

TEST(AloneProcessTest, CheckpointsAtTheStepsAskedFor) {
  const fs::path folder = fresh_folder("every");
  train_alone(folder, write_training(folder, "epochs: 3\ncheckpoint: {everySteps: 10, keep: 9}\n"));
  // Written in the background, one may still be busy when the next is due; the final one never is.
  const checkpoint::Store store(folder / "job" / "checkpoints", 9);
  const auto names = store.list();
  ASSERT_GE(names.size(), 2u);
  EXPECT_EQ(names.front().step, 33u);
  EXPECT_GE(names.back().step, 10u);
}

TEST(AloneProcessTest, ARequestThatItsCheckpointHasMetIsNotTakenAgain) {
  const fs::path folder = fresh_folder("asked");
  const fs::path training = write_training(folder, "epochs: 2\n");
  group::Membership membership = alone(folder, training);
  membership.uid = "uid-1";
  membership.checkpoint_request = folder / "no-request";
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  metrics::Reporter nowhere("", "chief", 0);
  {
    Leader leader(membership, assembly, nowhere, open_store(membership, assembly), {}, {});
    LocalSynchronizer synchronizer(assembly, nullptr, 1);
    synchronizer.step();
    leader.checkpointer()->request("first");
    leader.save(synchronizer);
  }
  const std::string address = free_address();
  metrics::Reporter reporter(address, "chief", 0);
  auto store = open_store(membership, assembly);
  const auto newest = store->newest();
  ASSERT_TRUE(newest);
  for (const bool of_this_job : {true, false}) {
    if (!of_this_job) membership.uid = "uid-2";
    Leader leader(membership, assembly, reporter, open_store(membership, assembly), {}, {});
    leader.begin(newest);
    leader.checkpointer()->begin(newest->manifest.position, {});
    leader.checkpointer()->request("first");
    EXPECT_EQ(leader.checkpointer()->due(newest->manifest.position, {}), !of_this_job);
  }
  const Json progress = Json::parse(http_get(address, "/progress", std::chrono::seconds(30)));
  const Json expected = {
      {"request", "first"}, {"step", 1}, {"checkpoint", newest->directory.string()}};
  EXPECT_EQ(progress["requestedCheckpoint"], expected);
}

TEST(AloneProcessTest, DivergenceNamesTheStepAndKeepsTheLastGoodCheckpoint) {
  const fs::path folder = fresh_folder("diverges");
  const fs::path training =
      write_training(folder, "epochs: 100\noptimizer: {name: sgd, learningRate: 1000000}\n");
  train_a_while(folder, training, 1);
  const fs::path last = checkpoint::Store(folder / "job" / "checkpoints", 5).newest()->directory;
  try {
    run_alone(alone(folder, training), {}, nullptr);
    FAIL() << "expected divergence";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kDiverged);
    EXPECT_THAT(error.what(), HasSubstr("step"));
    EXPECT_THAT(error.what(), HasSubstr("; " + last.filename().string() + " is kept"));
    EXPECT_THAT(error.what(), Not(HasSubstr("-nan")));
  }
  EXPECT_EQ(checkpoint::Store(folder / "job" / "checkpoints", 5).newest()->directory, last);
}

TEST(AloneProcessTest, DivergenceWithoutACheckpointDoesNotSpeakOfOne) {
  const fs::path folder = fresh_folder("diverges-at-once");
  const fs::path training =
      write_training(folder, "epochs: 100\noptimizer: {name: sgd, learningRate: 1000000}\n");
  try {
    run_alone(alone(folder, training), {}, nullptr);
    FAIL() << "expected divergence";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("no checkpoint had been saved"));
  }
}

TEST(AloneProcessTest, ACheckpointOfAnotherModelIsRefused) {
  const fs::path folder = fresh_folder("other-model");
  const fs::path training = write_training(folder, "epochs: 1\n");
  train_alone(folder, training);
  std::string text = read_file(training);
  text.replace(text.find("units: 16"), 9, "units: 17");
  write_file_atomically(training, text);
  try {
    run_alone(alone(folder, training), {}, nullptr);
    FAIL() << "expected a refusal";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.layers[0].dense.units: expected 16 (an integer), "
                                        "as in ckpt-11-g1"));
  }
}

// 330 samples in batches of 32, four of which are done.
class OtherBatchTest : public testing::Test {
 protected:
  fs::path interrupted(const std::string& name) {
    folder_ = fresh_folder(name);
    train_a_while(folder_, write_training(folder_, "epochs: 1\n"), 4);
    return folder_;
  }
  fs::path training_of_batch(const std::string& size) {
    const fs::path training = write_training(folder_, "epochs: 1\n");
    std::string text = read_file(training);
    text.replace(text.find("batchSize: 32"), 13, "batchSize: " + size);
    write_file_atomically(training, text);
    return training;
  }
  fs::path folder_;
};

TEST_F(OtherBatchTest, GoesOnAtTheSameSample) {
  interrupted("batch-64");
  EXPECT_EQ(train_alone(folder_, training_of_batch("64"))["step"], 4 + 4);
  interrupted("batch-1");
  EXPECT_EQ(train_alone(folder_, training_of_batch("1"))["step"], 4 + 202);
}

TEST_F(OtherBatchTest, IsRefusedWhereItDoesNotDivideNamingBoth) {
  interrupted("batch-48");
  try {
    train_alone(folder_, training_of_batch("48"));
    FAIL() << "expected a refusal";
  } catch (const Invalid& error) {
    EXPECT_THAT(error.what(), HasSubstr("batchSize: expected 32 (an integer), as in ckpt-4-g1"));
    EXPECT_THAT(error.what(), HasSubstr("found 48 (an integer)"));
    EXPECT_THAT(error.what(), HasSubstr("128 samples of epoch 0 are done"));
  }
}

TEST(AloneProcessTest, DoesNotBeginAgainWhereAllCheckpointsAreDamaged) {
  const fs::path folder = fresh_folder("damaged");
  const fs::path training = write_training(folder, "epochs: 1\n");
  train_a_while(folder, training, 4);
  const fs::path manifest = folder / "job" / "checkpoints" / "ckpt-4-g1" / "manifest.json";
  fs::resize_file(manifest, 100);
  try {
    run_alone(alone(folder, training), {}, nullptr);
    FAIL() << "expected a refusal";
  } catch (const Invalid& error) {
    EXPECT_EQ(error.exit_code(), kBadInput);
    EXPECT_THAT(error.what(), HasSubstr(manifest.string() + ": truncated"));
  }
  EXPECT_FALSE(fs::exists(folder / "job" / "result.json"));
  EXPECT_EQ(checkpoint::Store(folder / "job" / "checkpoints", 5).list().size(), 1u);
}

TEST(AloneProcessTest, WithoutAFolderItSaysThatNothingIsKept) {
  const fs::path folder = fresh_folder("nowhere");
  group::Membership membership = alone(folder, write_training(folder, "epochs: 1\n"));
  membership.storage.clear();
  Json result;
  testing::internal::CaptureStderr();
  log::initialize("test");
  EXPECT_EQ(run_alone(membership, {}, &result), kSuccess);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("nothing of this training will be kept"));
  EXPECT_GT(result["trainLoss"], 0);
}

// By the plan of 660 steps the statistics of batch normalization converge; after 11 they have not.
TEST(AloneProcessTest, WarnsOfStatisticsThatHaveNotConvergedInWhatIsExported) {
  const std::string early =
      "epochs: 60\nevaluation: {}\nearlyStopping: {metric: validationLoss, patience: 1, minDelta: "
      "1000, restoreBest: true}\n";
  for (const auto& [more, warning] :
       {std::pair<std::string, std::string>{early, "normalization: after 11 steps with a momentum"},
        {"epochs: 60\n", ""},
        {"epochs: 30\noptimizer: {ema: {decay: 0.9999}}\n", "after 330 steps with a decay"}}) {
    const fs::path folder = fresh_folder("unconverged");
    testing::internal::CaptureStderr();
    log::initialize("test");
    const Json result = train_alone(folder, write_training(folder, more));
    const std::string said = testing::internal::GetCapturedStderr();
    if (warning.empty())
      EXPECT_THAT(said, Not(HasSubstr("what they began with")));
    else
      EXPECT_THAT(said, HasSubstr(warning));
  }
}

TEST(AloneProcessTest, StoppedBeforeItStartsItLeavesWithItsCode) {
  const fs::path folder = fresh_folder("stopped");
  std::stop_source stop;
  stop.request_stop();
  const auto membership = alone(folder, write_training(folder, "epochs: 1\n"));
  EXPECT_EQ(run_alone(membership, stop.get_token(), nullptr), kTerminated);
  EXPECT_EQ(checkpoint::Store(folder / "job" / "checkpoints", 5).newest()->manifest.position.step,
            0u);
}

TEST(InitializeFromTest, BeginsWithTheWeightsOfAnotherTraining) {
  const fs::path folder = fresh_folder("source");
  const Json source = train_alone(folder, write_training(folder, "epochs: 1\n"));
  const fs::path model = folder / "job" / source["model"].get<std::string>();
  const Assembly assembly = assemble(
      Training::load(write_training(folder, "epochs: 1\ninitializeFrom: " + model.string() + "\n")),
      1, false, {});
  const auto& layout = assembly.engine->layout();
  std::vector<float> parameters(layout.size());
  checkpoint::fill_initial_parameters(assembly.spec(), layout, parameters);
  EXPECT_EQ(source["weightsDigest"], checkpoint::weights_digest(layout, parameters));
}

TEST(ThreadChoiceTest, TheEnvironmentDividesAMachine) {
  setenv("MUSTER_THREADS", "2", 1);
  EXPECT_EQ(ThreadChoice::from_environment(0).threads, 2);
  EXPECT_EQ(ThreadChoice::from_environment(3).threads, 3);
  EXPECT_FALSE(ThreadChoice::from_environment(0).exclusive);
  setenv("MUSTER_THREADS", "many", 1);
  EXPECT_THROW(ThreadChoice::from_environment(0), Invalid);
  unsetenv("MUSTER_THREADS");
  EXPECT_TRUE(ThreadChoice::from_environment(0).exclusive);
}

}  // namespace
}  // namespace muster::loop
