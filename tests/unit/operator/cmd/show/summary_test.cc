#include "operator/cmd/show/summary.h"

#include <gmock/gmock.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "operator/cmd/show/summary_text.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::cmd {
namespace {

using testing::HasSubstr;

// The summary's text, of a job that has succeeded with this result.
std::string text_of(const Json& result) {
  const test::TemporaryFolder scratch;
  const local::JobDirectory directory(scratch.path());
  write_file_atomically(directory.result(), result.dump());
  api::TrainingJob job;
  job.status.conditions.push_back({"Succeeded", true, "", "", {}});
  return summary_text("mnist", with_shown_files(summary_of(directory, job, {}, 1), directory));
}

TEST(SummaryTest, SaysOfATrainingThatItWasStoppedEarlyAndWhatWasBest) {
  Json result = {
      {"step", 8800},
      {"epochs", 8},
      {"stoppedEarly", true},
      {"best", {{"metric", "validationLoss"}, {"value", 0.25}, {"step", 5500}, {"epoch", 5}}}};
  EXPECT_THAT(text_of(result), HasSubstr("stopped early        the best validationLoss, 0.25, was "
                                         "after epoch 5, at step 5,500"));
  result["stoppedEarly"] = false;
  EXPECT_THAT(text_of(result), testing::Not(HasSubstr("stopped early")));
  result.erase("best");
  result["stoppedEarly"] = true;
  EXPECT_THAT(text_of(result), HasSubstr("no evaluation came to a finite value"));
}

TEST(SummaryTest, SaysOfATrainingWhichValueHasEndedIt) {
  Json result = {
      {"step", 8800},
      {"reached", {{"metric", "trainLoss"}, {"value", 0.048125}, {"step", 8800}, {"epoch", 8}}}};
  EXPECT_THAT(text_of(result),
              HasSubstr("stopWhen reached     trainLoss was 0.048125 at step 8,800"));
  result["reached"] = nullptr;
  EXPECT_THAT(text_of(result), testing::Not(HasSubstr("stopWhen")));
}

TEST(SummaryTest, SaysWhichMetricsAreNoNumbers) {
  const test::TemporaryFolder scratch;
  const local::JobDirectory directory(scratch.path());
  write_file_atomically(directory.result(), R"({"step": 5})");
  std::filesystem::create_directory(scratch.path() / "evaluations");
  write_file_atomically(scratch.path() / "evaluations/5.json",
                        R"({"final": true, "validation": {"loss": null, "accuracy": 0.5}})");
  api::TrainingJob job;
  job.status.conditions.push_back({"Succeeded", true, "", "", {}});
  const Json summary = summary_of(directory, job, {}, 1);
  EXPECT_EQ(summary["notFinite"], Json::array({"validationLoss"}));
  EXPECT_THAT(summary_rows(summary),
              testing::ContainsRegex("validation loss +not a finite number\n"));
}

TEST(SummaryTest, WarnsOfDataOnWhichNothingWasMeasured) {
  const test::TemporaryFolder scratch;
  const local::JobDirectory directory(scratch.path());
  write_file_atomically(directory.result(), R"({"step": 5})");
  std::filesystem::create_directory(scratch.path() / "evaluations");
  api::TrainingJob job;
  job.training["data"] = {{"validation", Json::object()}, {"test", Json::object()}};
  job.status.conditions.push_back({"Succeeded", true, "", "", {}});
  const auto summary_with = [&](const char* evaluation) {
    write_file_atomically(scratch.path() / "evaluations/5.json", evaluation);
    return summary_of(directory, job, {}, 1);
  };
  const Json one = summary_with(R"({"final": true, "validation": {}, "test": {"loss": 0.5}})");
  EXPECT_EQ(one["notMeasured"], Json::array({"validation"}));
  EXPECT_THAT(summary_rows(one),
              testing::ContainsRegex("validation data +warning: nothing was measured on them"));
  EXPECT_EQ(exit_code_of(job, {}, one), kSuccess);
  const Json other =
      summary_with(R"({"final": true, "validation": {"loss": null}, "test": {"error": "why"}})");
  EXPECT_TRUE(other["notMeasured"].is_null()) << "not finite, and not evaluated";
}

TEST(SummaryTest, HasTheCodeOfAReplicaThatCouldNotBeStarted) {
  api::TrainingJob job;
  job.status.conditions.push_back(
      {"FailureTarget", true, "BackoffLimitExceeded", "worker-0 could not be started", {}});
  api::ReplicaRecord record;
  record.role = api::Role::worker;
  record.failed = true;
  job.status.records = {record};
  plan::ObservedReplica replica;
  replica.phase = plan::Phase::failed;
  replica.reason = "NotStarted";
  replica.finished = api::Time();
  EXPECT_EQ(exit_code_of(job, {replica}, {}), kUnavailable);
  replica.reason = "";
  EXPECT_EQ(exit_code_of(job, {replica}, {}), kInternal);
}

TEST(SummaryTest, SaysOfWhichStepTheExportedModelIs) {
  const Json result = {
      {"step", 8800}, {"exportedStep", 5500}, {"model", "model/model.safetensors"}};
  EXPECT_THAT(text_of(result), testing::ContainsRegex("model\\.safetensors, of step 5,500$"));
}

TEST(SummaryTest, NamesTheFilesOfTheExportedModel) {
  Json result = {
      {"step", 8800}, {"model", "model/model.safetensors"}, {"onnx", "model/model.onnx"}};
  EXPECT_THAT(text_of(result), testing::ContainsRegex("model  .*model/model\\.safetensors"));
  EXPECT_THAT(text_of(result), testing::ContainsRegex("model as ONNX  .*model/model\\.onnx"));
  result.erase("onnx");
  EXPECT_THAT(text_of(result), testing::Not(HasSubstr("ONNX")));
}

// A job that was suspended at step 7, by its /progress.
api::TrainingJob suspended_job() {
  api::TrainingJob job;
  job.training = {{"epochs", 1}};
  job.status.conditions.push_back({"Suspended", true, "", "", {}});
  job.status.progress = {{"step", 7}};
  return job;
}

TEST(SummaryTest, SaysOfATrainingThatWasSuspendedThatNothingWasSaved) {
  const test::TemporaryFolder scratch;
  const local::JobDirectory directory(scratch.path());
  const Json summary = summary_of(directory, suspended_job(), {}, 1);
  EXPECT_EQ(summary["step"], 0) << "where the next run begins";
  EXPECT_THAT(summary_rows(summary),
              testing::ContainsRegex("checkpoint +none was saved: the next run begins anew"));
  api::TrainingJob own = suspended_job();
  own.training = nullptr;
  EXPECT_THAT(summary_rows(summary_of(directory, own, {}, 1)), testing::Not(HasSubstr("saved")))
      << "what a program of one's own saves is not known";
}

// A loop of links, for a root that no permission keeps out.
TEST(SummaryTest, DoesNotSayThatNothingWasSavedWhereCheckpointsCannotBeRead) {
  const test::TemporaryFolder scratch;
  const local::JobDirectory directory(scratch.path());
  std::filesystem::create_symlink("checkpoints", scratch.path() / "checkpoints");
  const Json summary = summary_of(directory, suspended_job(), {}, 1);
  EXPECT_EQ(summary["step"], 7) << "what is known";
  EXPECT_THAT(summary_rows(summary), testing::Not(HasSubstr("saved")));
}

}  // namespace
}  // namespace muster::cmd
