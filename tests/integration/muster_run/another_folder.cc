#include <gmock/gmock.h>

#include <fstream>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A job that trains a line, in one process.
std::string line(const std::string& name, const std::string& rate, const std::string& adopt = "") {
  return "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: " + name +
         "}\nspec:\n  replicaSpecs: {chief: {}}\n" +
         (adopt.empty() ? "" : "  storage: {adopt: " + adopt + "}\n") +
         "  training:\n    model: {name: linear-regression}\n"
         "    data: {train: {syntheticLinear: {samples: 1000}}}\n"
         "    epochs: 2\n    optimizer: {name: sgd, learningRate: " +
         rate + "}\n";
}

void rewrite(const ScriptJob& job, const std::string& manifest) {
  std::ofstream(job.folder() / "job.yaml") << manifest;
}

// The owner of a directory is known even without job.json.
TEST(AnotherFolder, is_refused_and_left_as_it_was) {
  ScriptJob job(line("one", "0.01"));
  ASSERT_EQ(job.run()->wait(), kSuccess);
  const std::string owner = read_text(job.directory() / "owner.json");
  const std::string result = read_text(job.directory() / "result.json");
  fs::remove(job.directory() / "job.json");

  for (const auto& [manifest, said] :
       {std::pair{line("two", "0.01"), "found that the job one has trained there"},
        std::pair{line("one", "0.1"), "training.optimizer.learningRate (was 0.01, is 0.1)"}}) {
    rewrite(job, manifest);
    auto other = job.run();
    EXPECT_EQ(other->wait(), kProtocol) << other->output();
    EXPECT_THAT(other->output(), AllOf(HasSubstr(said), HasSubstr("spec.storage.adopt")));
    EXPECT_EQ(read_text(job.directory() / "owner.json"), owner);
    EXPECT_EQ(read_text(job.directory() / "result.json"), result);
  }
}

TEST(AnotherFolder, of_an_earlier_job_of_the_name_that_had_finished_ends_at_once) {
  ScriptJob job(line("one", "0.01"));
  ASSERT_EQ(job.run()->wait(), kSuccess);
  fs::remove(job.directory() / "job.json");
  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("another job had finished this training"));
  EXPECT_THAT(job.log("chief-0"), HasSubstr("training was finished before"));
}

TEST(AnotherFolder, is_taken_on_purpose) {
  ScriptJob job(line("one", "0.01"));
  ASSERT_EQ(job.run()->wait(), kSuccess);
  fs::remove(job.directory() / "job.json");
  rewrite(job, line("two", "0.1", "one"));
  auto other =
      job.muster({"run", "job.yaml", "--directory", "run", "--set", "spec.training.epochs=3"});
  EXPECT_EQ(other->wait(), kSuccess) << other->output();
  EXPECT_THAT(other->output(), Not(HasSubstr("another job had finished")));
  const Json result = Json::parse(read_text(job.directory() / "result.json"));
  EXPECT_EQ(result["epochs"], 3);
}

}  // namespace
}  // namespace muster::test
