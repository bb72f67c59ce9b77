#include "common/job/results.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "common/documents/json_file.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

class ResultsTest : public testing::Test {
 protected:
  void evaluate(int step, const Json& content) {
    fs::create_directory(root() / "evaluations");
    const fs::path file = root() / "evaluations" / (std::to_string(step) + ".json");
    std::ofstream(file) << content;
    // Each file is a second newer than the one before: file systems may keep whole seconds.
    fs::last_write_time(file, fs::file_time_type::clock::now() + std::chrono::seconds(++files_));
  }
  void end(const Json& result) { std::ofstream(root() / "result.json") << result; }
  fs::path root() const { return folder_.path(); }

  const test::TemporaryFolder folder_;
  int files_ = 0;
};

TEST_F(ResultsTest, TakeTheEvaluationOfTheExportedWeights) {
  for (const int step : {10, 20}) evaluate(step, {{"step", step}});
  EXPECT_EQ(evaluation_of(root(), {{"step", 20}, {"exportedStep", 10}})["step"], 10);
  EXPECT_EQ(evaluation_of(root(), {{"step", 20}})["step"], 20);
  EXPECT_TRUE(evaluation_of(root(), {{"step", 30}}).is_null());
  EXPECT_TRUE(evaluation_of(root(), nullptr).is_null());
}

TEST_F(ResultsTest, NameFilesByTheirWholePathsAndHaveTheFinalEvaluation) {
  EXPECT_TRUE(read_results(root()).is_null());
  end({{"step", 20},
       {"checkpoint", "checkpoints/ckpt-20-g1"},
       {"model", "model/model.safetensors"},
       {"best", {{"step", 20}, {"checkpoint", "checkpoints/ckpt-20-g1"}}}});
  Json results = read_results(root());
  EXPECT_EQ(results["exportedStep"], 20);
  EXPECT_EQ(results["checkpoint"], (root() / "checkpoints/ckpt-20-g1").string());
  EXPECT_EQ(results["model"], (root() / "model/model.safetensors").string());
  EXPECT_EQ(results["best"]["checkpoint"], (root() / "checkpoints/ckpt-20-g1").string());
  evaluate(20, {{"step", 20}, {"final", false}, {"validation", {{"loss", 1}}}});
  EXPECT_FALSE(read_results(root()).contains("validation")) << "of the same step, before its end";
  evaluate(20, {{"step", 20},
                {"final", true},
                {"validation", {{"loss", 0.5}, {"precisionByClass", {{"cat", 0.5}}}}},
                {"test", {{"error", "no such file"}}}});
  results = read_results(root());
  EXPECT_EQ(results["validation"], (Json{{"loss", 0.5}}));
  EXPECT_EQ(results["test"], (Json{{"error", "no such file"}}));
}

TEST_F(ResultsTest, HaveTheBestThatTheFinalEvaluationHasFound) {
  end({{"step", 20}, {"best", {{"step", 10}, {"checkpoint", "checkpoints/ckpt-10-g1"}}}});
  evaluate(20, {{"step", 20},
                {"final", true},
                {"best", {{"step", 20}, {"checkpoint", "checkpoints/ckpt-20-g1"}}}});
  const Json expected = {{"step", 20},
                         {"checkpoint", (root() / "checkpoints/ckpt-20-g1").string()}};
  EXPECT_EQ(read_results(root())["best"], expected);
  EXPECT_EQ(read_final_evaluation(root())["best"], expected);
}

TEST_F(ResultsTest, OfAnEvaluatorAreThoseThatItWroteLastThoughNoLeaderHasEndedYet) {
  EXPECT_TRUE(read_final_evaluation(root()).is_null());
  evaluate(30, {{"step", 30}, {"final", true}, {"test", {{"loss", 9}}}});
  evaluate(10, {{"step", 10}, {"final", true}, {"test", {{"loss", 0.25}}}});
  evaluate(20, {{"step", 20}, {"final", false}, {"validation", {{"loss", 1}}}});
  EXPECT_EQ(read_final_evaluation(root()),
            (Json{{"exportedStep", 10}, {"test", {{"loss", 0.25}}}}));
}

TEST(ReadJson, GivesNullForWhatIsNotThereOrNotWhole) {
  const test::TemporaryFolder scratch;
  EXPECT_TRUE(read_json_or_null(scratch.path() / "none").is_null());
  std::ofstream(scratch.path() / "half") << "{\"a\": ";
  EXPECT_TRUE(read_json_or_null(scratch.path() / "half").is_null());
  EXPECT_TRUE(read_json_or_null(scratch.path()).is_null());
  std::ofstream(scratch.path() / "whole") << "{\"a\": 1}";
  EXPECT_EQ(read_json_or_null(scratch.path() / "whole")["a"], 1);
}

}  // namespace
}  // namespace muster
