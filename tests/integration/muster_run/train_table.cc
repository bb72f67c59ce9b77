#include <fmt/format.h>
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
  EXPECT_EQ(printed(job, {"predict", "--checkpoint", "run", "new.csv", "--key", "id", "--to",
                          "new.parquet"}),
            "");
  EXPECT_THAT(
      printed(job, {"data", "describe", "new.parquet"}),
      AllOf(HasSubstr("new.parquet: 2 rows, 6 columns\n"), HasSubstr("setosa (1), virginica (1)")));
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

TEST(MusterRunTable, decides_between_0_and_1_until_the_auc_is_reached) {
  ScriptJob job("");
  std::ofstream csv(job.folder() / "clicks.csv");
  csv << "age,click\n";
  for (int i = 0; i < 600; ++i)
    csv << i * 37 % 100 << "," << (i * 37 % 100 + i * 61 % 29 > 60 ? 1 : 0) << "\n";
  csv.close();
  EXPECT_THAT(printed(job, {"data", "suggest", "clicks.csv", "--target", "click"}),
              HasSubstr("loss: binaryCrossEntropy"));
  printed(job, {"data", "suggest", "clicks.csv", "--target", "click", "--output", "own.yaml"});
  printed(job, {"run", "own.yaml", "--directory", "run", "--set",
                "spec.training.stopWhen={metric: validationAuc, atLeast: 0.9}"});
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["reached"]["metric"], "validationAuc") << summary;
  EXPECT_GT(summary["testAuc"], 0.85);
  EXPECT_GT(summary["testF1"], 0.7);
  const Json evaluated =
      Json::parse(printed(job, {"evaluate", "--checkpoint", "run", "-o", "json"}));
  EXPECT_EQ(evaluated["auc"], summary["testAuc"]);
  int64_t samples = 0;
  for (const Json& of_target : evaluated.at("confusion"))
    for (const Json& count : of_target) samples += count.get<int64_t>();
  EXPECT_EQ(samples, 90);
  std::ofstream(job.folder() / "new.csv") << "age\n5\n95\n";
  const auto lines = lines_of(printed(job, {"predict", "--checkpoint", "run", "new.csv"}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_LT(std::stod(lines[1].substr(2)), 0.5);
  EXPECT_GT(std::stod(lines[2].substr(2)), 0.5);
  EXPECT_LT(std::stod(lines[2].substr(2)), 1) << "a probability";
  auto refused = job.muster({"run", "own.yaml", "--directory", "other", "--set",
                             "spec.training.data.train.table.target.column=age", "--set",
                             "spec.training.data.train.table.features=[{columns: [click]}]"});
  EXPECT_EQ(refused->wait(), kBadInput);
  EXPECT_THAT(refused->output(), HasSubstr(": expected a target from 0 to 1, found "));
  EXPECT_THAT(refused->output(), HasSubstr("for the model's loss is binaryCrossEntropy"));
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

// Half of the rows have the weight 0 and a target that has nothing to do with x.
TEST(MusterRunTable, weighs_rows_and_predicts_quantiles_alike_by_each_strategy) {
  ScriptJob job("");
  std::ofstream csv(job.folder() / "waits.csv");
  csv << "x,share,wait,user\n";
  for (int i = 0; i < 480; ++i) {
    const int x = i % 20, noise = i * 37 % 101;
    csv << x << (i % 2 == 0 ? ",0,9000" : fmt::format(",2.5,{}", 100 * x + noise)) << ",u" << i % 3
        << "\n";
  }
  csv.close();
  std::ofstream(job.folder() / "own.yaml") << R"(
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: waits}
spec:
  training:
    model:
      layers: [dense: {units: 2}]
      loss: quantile
      lossOptions: {quantiles: [0.1, 0.9]}
    data:
      train:
        table:
          files: waits.csv
          features: [{columns: [x]}]
          target: {column: wait, transform: standardize}
          weight: share
      validation:
        table: {files: waits.csv, ranking: {groupBy: user, at: 5}}
    batchSize: 24
    epochs: 200
    optimizer: {name: adam, learningRate: 0.02}
  replicaSpecs: {chief: {replicas: 1}, worker: {replicas: 1}, ps: {replicas: 1}}
)";
  printed(job, {"run", "own.yaml", "--directory", "run"});
  const std::string weights = read_text(job.directory() / "model/model.safetensors");
  std::ofstream(job.folder() / "new.csv") << "x\n3\n15\n";
  const auto lines = lines_of(printed(job, {"predict", "--checkpoint", "run", "new.csv"}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "row,quantile 0.1 of wait,quantile 0.9 of wait");
  for (const auto& [line, x] : {std::pair(lines[1], 3), std::pair(lines[2], 15)}) {
    const size_t comma = line.rfind(',');
    EXPECT_NEAR(std::stod(line.substr(2)), 100 * x + 10, 60) << line;
    EXPECT_NEAR(std::stod(line.substr(comma + 1)), 100 * x + 90, 60) << line;
  }
  const Json evaluated = Json::parse(
      printed(job, {"evaluate", "--checkpoint", "run", "--data", "validation", "-o", "json"}));
  EXPECT_GT(evaluated["mae"], 1000) << "in the unit of the data, and of all rows";
  EXPECT_EQ(evaluated["hitRate"], 1);
  printed(job, {"run", "own.yaml", "--directory", "run-2", "--set", "spec.strategy=collective",
                "--set", "spec.replicaSpecs={chief: {replicas: 1}, worker: {replicas: 1}}"});
  EXPECT_EQ(read_text(job.folder() / "run-2/model/model.safetensors"), weights);
}

// A table of shops, of which each city buys by a rule of its own.
std::string shops(const std::vector<std::string>& cities) {
  std::string text = "city,price,bought\n";
  for (int i = 0; i < 240; ++i) {
    const std::string& city = cities[static_cast<size_t>(i * 7 % 240) % cities.size()];
    const int price = i % 10;
    const bool bought = (city == "Oslo") != (price < 5);
    text += city + "," + std::to_string(price) + (bought ? ",yes\n" : ",no\n");
  }
  return text;
}

TEST(MusterRunTable, goes_on_with_the_table_of_another_day) {
  ScriptJob job("");
  std::ofstream(job.folder() / "day1.csv") << shops({"Rome", "Paris"});
  std::ofstream(job.folder() / "day2.csv") << shops({"Paris", "Oslo"});
  std::ofstream(job.folder() / "own.yaml") << R"(
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: shops}
spec:
  training:
    model: {layers: [dense: {units: 16, activation: relu}, dense: {units: 2}], loss: softmaxCrossEntropy}
    data:
      train:
        table:
          files: day1.csv
          features: [{columns: [price]}, {columns: [city], kind: category, spareValues: 1}]
          target: {column: bought}
    batchSize: 24
    epochs: 40
    optimizer: {name: adam, learningRate: 0.01}
  replicaSpecs: {chief: {replicas: 1}}
)";
  printed(job, {"run", "own.yaml", "--directory", "run"});
  const std::string run = printed(
      job, {"run", "own.yaml", "--directory", "run", "--continue", "--set",
            "spec.training.data.train.table.files=day2.csv", "--set", "spec.training.epochs=80"});
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["epochs"], 80) << run;
  // Oslo, which only the second day has, took the spare input of the first day's model.
  std::ofstream(job.folder() / "new.csv") << "city,price\nOslo,9\nOslo,0\nParis,0\nParis,9\n";
  const auto lines = lines_of(printed(job, {"predict", "--checkpoint", "run", "new.csv"}));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[1], StartsWith("1,yes,"));
  EXPECT_THAT(lines[2], StartsWith("2,no,"));
  EXPECT_THAT(lines[3], StartsWith("3,yes,"));
  EXPECT_THAT(lines[4], StartsWith("4,no,"));
}

}  // namespace
}  // namespace muster::test
