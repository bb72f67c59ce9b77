#include "trainer/loop/evaluation/best_mark.h"

#include <gtest/gtest.h>

#include "common/system/file.h"
#include "tests/unit/trainer/checkpoint/checkpoint_testing.h"
#include "tests/unit/trainer/loop/support.h"

namespace muster::loop {
namespace {

namespace fs = std::filesystem;

class BestMarkTest : public testing::Test {
 protected:
  BestMarkTest() { fs::create_directories(storage_ / "evaluations"); }

  // Leaves a checkpoint and its evaluation, as the evaluator does, and returns the step of the one
  // that is marked then.
  std::optional<uint64_t> take(BestMark& mark, uint64_t step, double loss, double accuracy) {
    const fs::path folder = storage_ / "checkpoints" / checkpoint::FolderName{step, 1}.text();
    fs::create_directories(folder);
    const Json evaluation = {{"step", step},
                             {"validation", {{"loss", loss}, {"accuracy", accuracy}}}};
    write_file_atomically(storage_ / "evaluations" / (std::to_string(step) + ".json"),
                          evaluation.dump());
    mark.take({folder, {}}, evaluation);
    return store_.step_of_best();
  }

  // Publishes checkpoints of steps 100 and 200; the second one is the final one.
  void publish_both() {
    const compute::ParameterLayout layout = checkpoint::test_layout();
    const std::vector<float> values(layout.size());
    for (const uint64_t step : {100u, 200u})
      checkpoint::publish(store_, checkpoint::test_manifest(step, 1), layout, values);
  }
  checkpoint::Store::Found final_checkpoint() const {
    return {storage_ / "checkpoints" / "ckpt-200-g1", checkpoint::test_manifest(200, 1)};
  }

  const fs::path storage_ = fresh_folder("best_mark");
  checkpoint::Store store_{storage_ / "checkpoints", 5};
  spec::TrainingSpec spec_;
};

TEST_F(BestMarkTest, GoesByTheLossIfNothingElseIsAskedFor) {
  BestMark mark(store_, spec_, storage_);
  EXPECT_EQ(take(mark, 100, 0.5, 0.5), 100u);
  EXPECT_EQ(take(mark, 200, 0.4, 0.4), 200u);
  EXPECT_EQ(take(mark, 300, 0.4, 0.9), 200u);
}

TEST_F(BestMarkTest, GoesByTheMetricOfBestOnlyOrElseOfEarlyStopping) {
  spec_.early_stopping = spec::EarlyStoppingSpec{"validationAccuracy", 1, 0.2, false};
  BestMark by_stopping(store_, spec_, storage_);
  EXPECT_EQ(take(by_stopping, 100, 0.5, 0.5), 100u);
  EXPECT_EQ(take(by_stopping, 200, 0.4, 0.4), 100u);
  EXPECT_EQ(take(by_stopping, 300, 0.6, 0.6), 300u);  // minDelta is early stopping's alone
  spec_.checkpoint.best_only = "validationLoss";
  BestMark by_best_only(store_, spec_, storage_);
  EXPECT_EQ(take(by_best_only, 400, 0.55, 0.1), 400u);  // 300 has a loss of 0.6
}

TEST_F(BestMarkTest, KnowsWhatTheProcessBeforeHasMarked) {
  spec_.checkpoint.best_only = "validationAccuracy";
  BestMark first(store_, spec_, storage_);
  EXPECT_EQ(take(first, 100, 0.5, 0.8), 100u);
  BestMark second(store_, spec_, storage_);
  EXPECT_EQ(take(second, 200, 0.1, 0.7), 100u);
  EXPECT_EQ(take(second, 300, 0.9, 0.9), 300u);
}

TEST_F(BestMarkTest, MarksInTheEndWhatRankZeroHasExported) {
  spec_.early_stopping = spec::EarlyStoppingSpec{"validationAccuracy", 1, 0.2, true};
  publish_both();
  BestMark mark(store_, spec_, storage_);
  EXPECT_EQ(take(mark, 200, 0.5, 0.9), 200u);
  checkpoint::Store::Found final = final_checkpoint();
  const Json evaluation = {{"validation", {{"accuracy", 0.9}}}};
  EXPECT_TRUE(mark.conclude(final, evaluation).is_null());
  EXPECT_EQ(store_.step_of_best(), 200u);
  final.manifest.position.evaluations.best = checkpoint::Best{0.8, 100, 1};
  EXPECT_TRUE(mark.conclude(final, evaluation).is_null());
  EXPECT_EQ(store_.step_of_best(), 100u);
}

TEST_F(BestMarkTest, TellsOfAFinalCheckpointThatIsTheBest) {
  spec_.checkpoint.best_only = "validationAccuracy";
  BestMark mark(store_, spec_, storage_);
  take(mark, 100, 0.5, 0.8);
  checkpoint::Store::Found final = final_checkpoint();
  final.manifest.position.evaluations.kept = checkpoint::Best{0.8, 100, 1};
  EXPECT_EQ(take(mark, 200, 0.4, 0.7), 100u);
  EXPECT_TRUE(mark.conclude(final, {{"validation", {{"accuracy", 0.7}}}}).is_null());
  EXPECT_EQ(store_.step_of_best(), 100u);
  EXPECT_EQ(take(mark, 200, 0.4, 0.9), 200u);
  const Json best = mark.conclude(final, {{"validation", {{"accuracy", 0.9}}}});
  EXPECT_EQ(store_.step_of_best(), 200u);
  EXPECT_EQ(best["metric"], "validationAccuracy");
  EXPECT_EQ(best["value"], 0.9);
  EXPECT_EQ(best["step"], 200);
  EXPECT_EQ(best["checkpoint"], "checkpoints/ckpt-200-g1");
  // Rank 0 knows of a better one.
  final.manifest.position.evaluations.kept = checkpoint::Best{0.95, 150, 1};
  EXPECT_TRUE(mark.conclude(final, {{"validation", {{"accuracy", 0.9}}}}).is_null());
}

TEST_F(BestMarkTest, WithRestoreBestMarksByTheMetricOfBestOnly) {
  spec_.checkpoint.best_only = "validationLoss";
  spec_.early_stopping = spec::EarlyStoppingSpec{"validationAccuracy", 1, 0, true};
  publish_both();
  BestMark mark(store_, spec_, storage_);
  EXPECT_EQ(take(mark, 200, 0.1, 0.9), 200u);
  checkpoint::Store::Found final = final_checkpoint();
  final.manifest.position.evaluations.best = checkpoint::Best{0.9, 200, 1};
  final.manifest.position.evaluations.kept = checkpoint::Best{0.05, 100, 1};
  EXPECT_TRUE(mark.conclude(final, {{"validation", {{"loss", 0.1}}}}).is_null());
  EXPECT_EQ(store_.step_of_best(), 100u);
}

TEST_F(BestMarkTest, PassesOverWhatHasNoSuchNumber) {
  BestMark mark(store_, spec_, storage_);
  take(mark, 100, 0.5, 0.5);
  mark.take({storage_ / "checkpoints" / "ckpt-200-g1", {}},
            {{"step", 200}, {"validation", {{"error", "damaged"}}}});
  EXPECT_EQ(store_.step_of_best(), 100u);
}

}  // namespace
}  // namespace muster::loop
