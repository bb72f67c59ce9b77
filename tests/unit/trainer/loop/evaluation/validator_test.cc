#include "trainer/loop/evaluation/validator.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/unit/trainer/loop/support.h"
#include "trainer/checkpoint/store/checkpoint.h"
#include "trainer/checkpoint/store/restore.h"
#include "trainer/folder/generations.h"
#include "trainer/loop/commands/on_samples.h"
#include "trainer/loop/roles/leader.h"
#include "trainer/loop/roles/roles.h"
#include "trainer/loop/synchronizers/local_synchronizer.h"
#include "trainer/loop/training_loop.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

// Eleven steps an epoch.
constexpr const char* kStops =
    "epochs: 60\noptimizer: {learningRate: 0.05}\nevaluation: {}\n"
    "earlyStopping: {patience: 3}\n";

// Of classes that overlap: there is little to learn after the first epochs.
fs::path overlapping(const fs::path& folder, const std::string& more) {
  const fs::path path = write_training(folder, more);
  std::string text = read_file(path);
  for (size_t at = 0; (at = text.find("shape: [8]", at)) != std::string::npos;)
    text.replace(at, 10, "shape: [2]");
  write_file_atomically(path, text);
  return path;
}

// Asks to stop before the step after `steps`.
class Interrupted : public Synchronizer {
 public:
  Interrupted(Synchronizer& inner, uint64_t steps) : inner_(inner), left_(steps) {}

  bool start(std::stop_token stop) override { return inner_.start(stop); }
  bool has_next() override {
    if (left_-- == 0) stop_.request_stop();
    return inner_.has_next();
  }
  StepResult step() override { return inner_.step(); }
  const checkpoint::Position& position() const override { return inner_.position(); }
  uint64_t generation() const override { return inner_.generation(); }
  void evaluated(const checkpoint::Evaluations& evaluations) override {
    inner_.evaluated(evaluations);
  }
  void read_weights(std::span<float> to) override { inner_.read_weights(to); }
  std::unique_ptr<Snapshot> snapshot() override { return inner_.snapshot(); }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  Synchronizer& inner_;
  uint64_t left_;
  std::stop_source stop_;
};

enum class Leaving { saves, killed };

void train_a_while(const fs::path& folder, const fs::path& training, uint64_t steps,
                   Leaving leaving) {
  const group::Membership membership = alone(folder, training);
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  metrics::Reporter reporter("", "chief", 0);
  auto store = open_store(membership, assembly);
  const auto from = store->to_resume();
  const uint64_t generation =
      folder::open_generation(membership.storage, from ? from->manifest.generation : 0);
  Leader leader(membership, assembly, reporter, std::move(store), {}, {});
  LocalSynchronizer inner(assembly, from ? &*from : nullptr, generation);
  Interrupted synchronizer(inner, steps);
  EXPECT_EQ(train(synchronizer, assembly, leader.recorder(), leader.checkpointer(),
                  leader.validator(), synchronizer.token()),
            Ending::interrupted);
  if (leaving == Leaving::saves) leader.save(synchronizer);
  leader.checkpointer()->newest();  // what is being written is a copy in `inner`
}

Json train_alone(const fs::path& folder, const fs::path& training) {
  Json result;
  EXPECT_EQ(run_alone(alone(folder, training), {}, &result), kSuccess);
  return result;
}

Json evaluation_at(const fs::path& folder, uint64_t step) {
  return Json::parse(read_file(folder / "job" / "evaluations" / (std::to_string(step) + ".json")));
}

checkpoint::Store store_of(const fs::path& folder) {
  return {folder / "job" / "checkpoints", 1};
}

std::vector<std::string> checkpoints_of(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& name : store_of(folder).list()) names.push_back(name.text());
  return names;
}

// What every epoch's evaluation came to, from the first.
std::vector<double> losses_of(const fs::path& folder, uint64_t epochs) {
  std::vector<double> losses;
  for (uint64_t epoch = 1; epoch <= epochs; ++epoch)
    losses.push_back(evaluation_at(folder, 11 * epoch)["validation"]["loss"]);
  return losses;
}

// Of the parameters that a checkpoint has, or of those to evaluate.
std::string digest_of(const fs::path& training, const checkpoint::Store::Found& found,
                      bool averaged = false) {
  const Assembly assembly = assemble(Training::load(training), 1, false, {});
  const auto& layout = assembly.engine->layout();
  std::vector<float> values(layout.size());
  if (averaged)
    checkpoint::load_weights(found, layout, values);
  else
    checkpoint::load(found, layout, {0, layout.size()}, values, "");
  return checkpoint::weights_digest(layout, values);
}

TEST(EarlyStoppingTest, EndsAfterTheEpochThatPatienceIsOverAt) {
  const fs::path folder = fresh_folder("stops");
  const Json result = train_alone(folder, overlapping(folder, kStops));
  const uint64_t epochs = result["epochs"];
  ASSERT_GT(epochs, 4u);
  ASSERT_LT(epochs, 60u);
  EXPECT_TRUE(result["stoppedEarly"]);
  EXPECT_EQ(result["step"], 11 * epochs);
  const std::vector<double> losses = losses_of(folder, epochs);
  const auto best = std::ranges::min_element(losses);
  EXPECT_EQ(best - losses.begin(), static_cast<int64_t>(epochs) - 4);
  EXPECT_EQ(result["best"]["value"], *best);
  EXPECT_EQ(result["best"]["epoch"], epochs - 3);
  EXPECT_EQ(result["validation"]["loss"], losses.back());
  EXPECT_FALSE(
      fs::exists(folder / "job" / "evaluations" / (std::to_string(11 * (epochs + 1)) + ".json")));
}

class InterruptedEarlyStoppingTest
    : public testing::TestWithParam<std::tuple<uint64_t, const char*>> {};

TEST_P(InterruptedEarlyStoppingTest, EndsWhereAnUndisturbedTrainingDoesWithTheSameBits) {
  const auto& [steps, average] = GetParam();
  std::string more = std::string(kStops) + "checkpoint: {everySteps: 4, bestOnly: {}}\n";
  more.insert(more.find("learningRate: 0.05") + 18, average);
  const fs::path whole = fresh_folder("whole");
  const Json expected = train_alone(whole, overlapping(whole, more));
  ASSERT_TRUE(expected["stoppedEarly"]);
  const fs::path broken = fresh_folder("broken");
  const fs::path training = overlapping(broken, more);
  for (const Leaving leaving : {Leaving::saves, Leaving::killed, Leaving::saves})
    train_a_while(broken, training, steps, leaving);
  Json found = train_alone(broken, training);
  EXPECT_EQ(found["step"], expected["step"]);
  EXPECT_EQ(found["weightsDigest"], expected["weightsDigest"]);
  for (const char* field : {"step", "epoch", "value", "metric"})
    EXPECT_EQ(found["best"][field], expected["best"][field]) << field;
  const auto best = [&](const fs::path& folder) {
    return digest_of(training, *store_of(folder).of_step(expected["best"]["step"]));
  };
  EXPECT_EQ(best(broken), best(whole));
}

// In the middle of an epoch, at its end, and one step further.
INSTANTIATE_TEST_SUITE_P(Steps, InterruptedEarlyStoppingTest,
                         testing::Combine(testing::Values(5, 11, 12, 20),
                                          testing::Values("", ", ema: {decay: 0.9}")));

constexpr const char* kAveraged = "optimizer: {ema: {decay: 0.9}}\n";

TEST(AverageTest, IsEvaluatedAndExportedWhileTheParametersAreTrainedAsWithoutIt) {
  const fs::path plain = fresh_folder("plain"), folder = fresh_folder("averaged");
  const std::string more = "epochs: 2\nevaluation: {}\n";
  const fs::path without = write_training(plain, more);
  const fs::path with = write_training(folder, more + kAveraged);
  const Json expected = train_alone(plain, without), result = train_alone(folder, with);
  const auto final = *store_of(folder).newest();
  EXPECT_EQ(expected["weightsDigest"], digest_of(with, final));
  EXPECT_EQ(result["weightsDigest"], digest_of(with, final, true));
  EXPECT_NE(result["weightsDigest"], expected["weightsDigest"]);
  EXPECT_EQ(result["trainLoss"], expected["trainLoss"]);
  EXPECT_NE(result["validation"]["loss"], expected["validation"]["loss"]);
  // The evaluation within the training, of a checkpoint and of the export are of the same weights.
  const Json within = evaluation_at(folder, 22)["validation"];
  EXPECT_EQ(result["validation"], within);
  for (const fs::path& where : {folder / "job", folder / "job" / "model"})
    EXPECT_EQ(evaluate_checkpoint(where, "validation")["loss"], within["loss"]) << where;
}

TEST(AverageTest, IsEvaluatedAlsoWhereNothingIsKept) {
  const fs::path folder = fresh_folder("kept"), nowhere = fresh_folder("not-kept");
  for (const char* devices : {"", "devices: 2\n"}) {
    const std::string more = std::string("epochs: 2\n") + kAveraged + devices;
    const Json expected = train_alone(folder, write_training(folder, more));
    group::Membership membership = alone(nowhere, write_training(nowhere, more));
    membership.storage.clear();
    Json result;
    EXPECT_EQ(run_alone(membership, {}, &result), kSuccess);
    EXPECT_EQ(result["weightsDigest"], expected["weightsDigest"]);
    EXPECT_EQ(result["validation"], expected["validation"]);
    fs::remove_all(folder / "job");
  }
}

TEST(AverageTest, OfTheBestEvaluationIsRestored) {
  const fs::path folder = fresh_folder("average-restored");
  std::string restoring = kStops;
  restoring.replace(restoring.find("patience: 3"), 11, "patience: 3, restoreBest: true");
  restoring.insert(restoring.find("learningRate: 0.05") + 18, ", ema: {decay: 0.9}");
  const fs::path training = overlapping(folder, restoring);
  const Json result = train_alone(folder, training);
  ASSERT_NE(result["exportedStep"], result["step"]);
  const auto best = *store_of(folder).of_step(result["exportedStep"]);
  EXPECT_EQ(result["weightsDigest"], digest_of(training, best, true));
  EXPECT_NE(result["weightsDigest"], digest_of(training, best));
  EXPECT_EQ(result["validation"]["loss"], result["best"]["value"]);
}

TEST(EarlyStoppingTest, ATrainingThatWasStoppedIsDoneUnlessItMayGoOn) {
  const fs::path folder = fresh_folder("done");
  const Json first = train_alone(folder, overlapping(folder, kStops));
  const Json again = train_alone(folder, overlapping(folder, kStops));
  EXPECT_EQ(again["checkpoint"], first["checkpoint"]);
  std::string patient = kStops;
  patient.replace(patient.find("patience: 3"), 11, "patience: 4");
  const Json longer = train_alone(folder, overlapping(folder, patient));
  EXPECT_GE(longer["epochs"].get<int>(), first["epochs"].get<int>() + 1);
}

TEST(EarlyStoppingTest, RestoreBestExportsTheBestEvaluationsWeights) {
  const fs::path folder = fresh_folder("restores");
  std::string restoring = kStops;
  restoring.replace(restoring.find("patience: 3"), 11, "patience: 3, restoreBest: true");
  const fs::path training = overlapping(folder, restoring);
  const Json result = train_alone(folder, training);
  const uint64_t best = result["best"]["step"];
  EXPECT_EQ(best, result["step"].get<uint64_t>() - 33);
  EXPECT_EQ(result["exportedStep"], best);
  EXPECT_EQ(result["best"]["checkpoint"], "checkpoints/ckpt-" + std::to_string(best) + "-g1");
  const auto final = store_of(folder).newest();
  EXPECT_TRUE(final->manifest.is_final());
  EXPECT_EQ(final->manifest.position.step, result["step"]);
  EXPECT_EQ(result["weightsDigest"], digest_of(training, *store_of(folder).of_step(best)));
  EXPECT_NE(result["weightsDigest"], digest_of(training, *final));
  EXPECT_EQ(result["validation"]["loss"], result["best"]["value"]);
  EXPECT_TRUE(evaluation_at(folder, best)["final"]);
  EXPECT_TRUE(evaluation_at(folder, best).contains("test"));
  EXPECT_FALSE(evaluation_at(folder, result["step"])["final"]);
  EXPECT_EQ(train_alone(folder, training)["weightsDigest"], result["weightsDigest"]);
}

// Where it has to begin another generation because the end could not be written.
TEST(EarlyStoppingTest, RestoreBestLeavesAloneWhatTheGroupTrains) {
  const fs::path folder = fresh_folder("restores-apart");
  std::string restoring = kStops;
  restoring.replace(restoring.find("patience: 3"), 11, "patience: 3, restoreBest: true");
  const group::Membership membership = alone(folder, overlapping(folder, restoring));
  Assembly assembly = assemble(Training::load(membership.training), 1, false, {});
  compute::Floats shared(assembly.engine->layout().size());
  compute::HostMemory view{std::span(shared)};
  assembly.engine->use(view, nullptr);
  metrics::Reporter reporter("", "chief", 0);
  Leader leader(membership, assembly, reporter, open_store(membership, assembly), {}, {});
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  ASSERT_EQ(train(synchronizer, assembly, leader.recorder(), leader.checkpointer(),
                  leader.validator(), {}),
            Ending::finished);
  const auto final = leader.save_final(synchronizer);
  const compute::Floats before = shared;
  const fs::path result = folder / "job" / "result.json";
  fs::create_directory(result);
  EXPECT_THROW(leader.conclude(final, final->manifest.position), WriteError);
  EXPECT_EQ(shared, before);
  fs::remove(result);
  const Json concluded = leader.conclude(final, final->manifest.position);
  EXPECT_NE(concluded["exportedStep"], concluded["step"]);
  EXPECT_EQ(shared, before);
}

TEST(EarlyStoppingTest, RestoreBestHoldsAlsoWhereTheTrainingGoesOnToItsEnd) {
  const fs::path folder = fresh_folder("restores-at-the-end");
  std::string restoring = kStops;
  restoring.replace(restoring.find("patience: 3"), 11, "patience: 60, restoreBest: true");
  const Json result = train_alone(folder, overlapping(folder, restoring));
  EXPECT_EQ(result["epochs"], 60);
  EXPECT_FALSE(result["stoppedEarly"]);
  const std::vector<double> losses = losses_of(folder, 60);
  const auto best = std::ranges::min_element(losses) - losses.begin() + 1;
  ASSERT_LT(best, 60);
  EXPECT_EQ(result["exportedStep"], 11 * best);
}

TEST(BestOnlyTest, KeepsTheNewestTheBestAndTheFinalOne) {
  const fs::path folder = fresh_folder("best-only");
  const fs::path training = overlapping(
      folder,
      "epochs: 30\noptimizer: {learningRate: 0.05}\nevaluation: {}\n"
      "checkpoint: {everyEpochs: 1, keep: 9, bestOnly: {metric: validationAccuracy}}\n");
  train_a_while(folder, training, 27 * 11 + 3, Leaving::saves);
  const auto newest = store_of(folder).newest();
  const auto& kept = newest->manifest.position.evaluations.kept;
  ASSERT_TRUE(kept);
  ASSERT_LT(kept->step, 27u * 11);
  const std::string best = "ckpt-" + std::to_string(kept->step) + "-g1";
  EXPECT_THAT(checkpoints_of(folder), ElementsAre("ckpt-300-g1", best));
  std::vector<double> accuracies;
  for (uint64_t epoch = 1; epoch <= 27; ++epoch)
    accuracies.push_back(evaluation_at(folder, 11 * epoch)["validation"]["accuracy"]);
  const auto first = std::ranges::max_element(accuracies);
  EXPECT_EQ(kept->value, *first);
  EXPECT_EQ(kept->epoch, static_cast<uint64_t>(first - accuracies.begin()) + 1);
  const Json result = train_alone(folder, training);
  EXPECT_EQ(result["best"]["metric"], "validationAccuracy");
  EXPECT_EQ(result["exportedStep"], 330);
  EXPECT_FALSE(result.contains("stoppedEarly"));
}

// By the metric that an evaluation has counted by class; another checkpoint than by the loss.
TEST(BestOnlyTest, GoesByAnyMetricOfTheEvaluation) {
  const fs::path folder = fresh_folder("balanced");
  const Json result = train_alone(
      folder, overlapping(folder,
                          "epochs: 12\noptimizer: {learningRate: 0.05}\nevaluation: {}\n"
                          "checkpoint: {bestOnly: {metric: validationBalancedAccuracy}}\n"));
  std::vector<double> values;
  for (uint64_t epoch = 1; epoch <= 12; ++epoch)
    values.push_back(evaluation_at(folder, 11 * epoch)["validation"]["balancedAccuracy"]);
  const auto best = std::ranges::max_element(values);
  EXPECT_EQ(result["best"]["metric"], "validationBalancedAccuracy");
  EXPECT_EQ(result["best"]["value"], *best);
  EXPECT_EQ(result["best"]["epoch"], best - values.begin() + 1);
  EXPECT_EQ(result["validation"]["balancedAccuracy"], values.back());
}

TEST(EvaluationInTheLoopTest, IsMadeAfterSoManyEpochs) {
  const fs::path folder = fresh_folder("every");
  const Json result =
      train_alone(folder, write_training(folder, "epochs: 5\nevaluation: {everyEpochs: 2}\n"));
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder / "job" / "evaluations"))
    files.push_back(entry.path().filename());
  std::ranges::sort(files);
  EXPECT_THAT(files, ElementsAre("22.json", "44.json", "55.json"));
  EXPECT_FALSE(evaluation_at(folder, 44)["final"]);
  EXPECT_TRUE(evaluation_at(folder, 55)["final"]);
  EXPECT_FALSE(result.contains("best"));
}

TEST(EvaluationInTheLoopTest, LeavesTheWeightsAsTheyAre) {
  const fs::path without = fresh_folder("without");
  const Json plain = train_alone(without, write_training(without, "epochs: 3\n"));
  const fs::path with = fresh_folder("with");
  const Json evaluated = train_alone(with, write_training(with, "epochs: 3\nevaluation: {}\n"));
  EXPECT_EQ(evaluated["weightsDigest"], plain["weightsDigest"]);
  EXPECT_EQ(evaluated["validation"], plain["validation"]);
}

TEST(EvaluationInTheLoopTest, IsShownInProgress) {
  const fs::path folder = fresh_folder("progress");
  const fs::path training = write_training(folder, "epochs: 2\nevaluation: {}\n");
  const group::Membership membership = alone(folder, training);
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  metrics::Reporter reporter("", "chief", 0);
  Leader leader(membership, assembly, reporter, open_store(membership, assembly), {}, {});
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  train(synchronizer, assembly, leader.recorder(), nullptr, leader.validator(), {});
  const Json last = evaluation_at(folder, 22)["validation"];
  const auto metrics = reporter.snapshot().validation;
  EXPECT_EQ(metrics.at("loss"), last["loss"]);
  EXPECT_EQ(metrics.at("accuracy"), last["accuracy"]);
  EXPECT_EQ(reporter.snapshot().state, "training");
}

TEST(EvaluationInTheLoopTest, IsRefusedWhereItCannotBeDone) {
  const fs::path folder = fresh_folder("refused");
  const fs::path training = write_training(folder, kStops);
  const auto code_of = [](auto action) {
    try {
      action();
    } catch (const Invalid& error) {
      EXPECT_THAT(error.what(), testing::AnyOf(HasSubstr("parameter servers"),
                                               HasSubstr("restoreBest: expected a storage")));
      return error.exit_code();
    }
    return 0;
  };
  EXPECT_EQ(code_of([&] { assemble(Training::load(training), 2, true, {}); }), kBadConfig);
  std::string restoring = kStops;
  restoring.replace(restoring.find("patience: 3"), 11, "patience: 3, restoreBest: true");
  group::Membership nowhere = alone(folder, write_training(folder, restoring));
  nowhere.storage.clear();
  EXPECT_EQ(code_of([&] { run_alone(nowhere, {}, nullptr); }), kBadConfig);
}

// A file stands where the folder of checkpoints should be, for a while.
TEST(BestOnlyTest, ABestThatCouldNotBeWrittenIsWrittenBeforeTheNext) {
  const fs::path folder = fresh_folder("owed");
  const fs::path training = write_training(folder, "epochs: 2\n");
  Assembly assembly = assemble(Training::load(training), 1, false, {});
  folder::open_generation(folder, 0);
  LocalSynchronizer synchronizer(assembly, nullptr, 1);
  const auto step = [&] { synchronizer.step(); };
  checkpoint::Store store(folder / "checkpoints", 5);
  Checkpointer::Options options;
  options.storage = folder;
  Checkpointer checkpointer(store, options);
  write_file_atomically(folder / "checkpoints", "");
  step();
  checkpointer.take_best(synchronizer, {});
  EXPECT_THROW(checkpointer.take_now(synchronizer, {}, {}), WriteError);
  fs::remove(folder / "checkpoints");
  step();
  checkpointer.take(synchronizer, {});
  EXPECT_EQ(checkpointer.newest(), "ckpt-1-g1");
  step();
  checkpointer.take_now(synchronizer, {}, {});
  std::vector<uint64_t> steps;
  for (const auto& name : store.list()) steps.push_back(name.step);
  EXPECT_THAT(steps, ElementsAre(3u, 1u));
}

}  // namespace
}  // namespace muster::loop
