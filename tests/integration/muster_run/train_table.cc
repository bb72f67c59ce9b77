#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kIris = MUSTER_SOURCE_DIR "/examples/data/iris.csv";

// Runs a command that must succeed, and returns what it has printed.
std::string printed(ScriptJob& job, const std::vector<std::string>& arguments) {
  auto command = job.muster(arguments);
  EXPECT_EQ(command->wait(), kSuccess) << command->output();
  return command->output();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(MusterRunTable, trains_on_a_csv_of_ones_own_in_two_commands_and_predicts) {
  ScriptJob job("");
  const fs::path csv = job.folder() / "flowers.csv";
  fs::copy_file(kIris, csv);
  EXPECT_THAT(printed(job, {"data", "describe", "flowers.csv"}),
              AllOf(HasSubstr("flowers.csv: 150 rows, 5 columns\n"),
                    HasSubstr("setosa (50), versicolor (50), virginica (50)")));
  printed(job, {"data", "suggest", "flowers.csv", "--target", "species", "--output", "own.yaml"});
  EXPECT_THAT(printed(job, {"validate", "own.yaml"}), HasSubstr("own.yaml: valid"));
  const std::string run = printed(job, {"run", "own.yaml", "--directory", "run"});
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_GT(summary["testAccuracy"], 0.85) << run;
  // Neither the training data nor the target are needed any more.
  fs::remove(csv);
  std::ofstream(job.folder() / "new.csv")
      << "id,petal_width,petal_length,sepal_width,sepal_length\n"
         "a-1,0.2,1.4,3.5,5.1\n\"b,2\",1.8,5.9,3,7.1\n";
  const auto lines =
      lines_of(printed(job, {"predict", "--checkpoint", "run", "new.csv", "--key", "id"}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0],
            "id,species,probability,probability of setosa,probability of versicolor,"
            "probability of virginica");
  EXPECT_THAT(lines[1], StartsWith("a-1,setosa,"));
  EXPECT_THAT(lines[2], StartsWith("\"b,2\",virginica,"));
  std::ofstream(job.folder() / "new.csv") << "petal_width\n1\n";
  auto refused = job.muster({"predict", "--checkpoint", "run", "new.csv"});
  EXPECT_EQ(refused->wait(), kBadInput);
  EXPECT_THAT(refused->output(),
              HasSubstr("new.csv: expected a column named \"sepal_length\", found the columns"));
}

TEST(MusterRunTable, trains_by_a_parameter_server_with_an_evaluator) {
  ScriptJob job("");
  printed(job, {"run", MUSTER_SOURCE_DIR "/examples/line.yaml", "--directory", "run", "--set",
                "spec.replicaSpecs.evaluator={replicas: 1}"});
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_LT(summary["validationLoss"], 0.15);
  std::ofstream(job.folder() / "points.csv") << "x\n0\n1\n";
  const auto lines = lines_of(printed(job, {"predict", "--checkpoint", "run", "points.csv"}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "row,y");
  EXPECT_THAT(lines[1], StartsWith("1,"));
  EXPECT_NEAR(std::stod(lines[1].substr(2)), 10, 0.3);
  EXPECT_NEAR(std::stod(lines[2].substr(2)), 12, 0.3);
  EXPECT_THAT(printed(job, {"evaluate", "--checkpoint", "run", "--data", "validation"}),
              HasSubstr("samples: 100\n"));
}

TEST(MusterRunTable, names_file_line_and_column_before_anything_runs) {
  ScriptJob job("");
  std::ofstream(job.folder() / "sales.csv") << "age,price\n1,2\nold,3\n4,5\n6,7\n";
  std::ofstream(job.folder() / "job.yaml") << R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: sales}
spec:
  training:
    model: {layers: [{dense: {units: 1}}], loss: meanSquaredError}
    data: {train: {table: {files: sales.csv, target: {column: price}}}}
    epochs: 1
  replicaSpecs: {chief: {replicas: 1}}
)";
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"validate", "job.yaml"}, {"run", "job.yaml"}}) {
    auto refused = job.muster(command);
    EXPECT_EQ(refused->wait(), kBadInput);
    EXPECT_THAT(refused->output(),
                AllOf(HasSubstr("spec.training.data.train.table: expected tables that can be read"),
                      HasSubstr("sales.csv, line 3, column age: expected a number, as 3 of the 4 "
                                "cells have, found \"old\"")));
  }
}

}  // namespace
}  // namespace muster::test
