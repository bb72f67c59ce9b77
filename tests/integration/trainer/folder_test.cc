#include <gmock/gmock.h>
#include <signal.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"

namespace muster::integration {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// A job in the folder that `before` has trained in, or still trains in.
std::unique_ptr<Job> job_in(const Job& before, const std::string& name, const std::string& uid,
                            const std::string& training, int workers = 1, bool evaluator = false) {
  auto job = std::make_unique<Job>(before.folder().filename(), training, 1, workers, evaluator,
                                   /*keep=*/true);
  job->uid = uid;
  job->environment = {{"MUSTER_NAMESPACE", "lab"}, {"MUSTER_JOB", name}};
  return job;
}

void name(Job& job, const std::string& name) {
  job.environment = {{"MUSTER_NAMESPACE", "lab"}, {"MUSTER_JOB", name}};
}

// Trains long enough to be disturbed.
std::string training_of_seconds() {
  std::string text = long_training("checkpoint: {everySeconds: 0.2}\n");
  text.replace(text.find("epochs: 2"), 9, "epochs: 8");
  return text;
}

std::string with_rate(const std::string& rate) {
  return small_training("optimizer: {name: adam, learningRate: " + rate + "}\n");
}

TEST(FolderTest, WhatAnotherJobHasTrainedIsNotTaken) {
  Job before("folder-another", with_rate("0.001"), 1, 1);
  name(before, "one");
  before.start_all();
  before.expect_success();
  const std::string result = read_file(before.folder() / "result.json");
  struct Case {
    std::string job, rate, said;
  };
  for (const auto& [job, rate, said] :
       {Case{"two", "0.001", "found that the job lab/one has trained there"},
        Case{"one", "0.01", "training.optimizer.learningRate (was 0.001, is 0.01)"}}) {
    const auto other = job_in(before, job, "uid-2", with_rate(rate), 1, /*evaluator=*/true);
    other->start("evaluator", 0);
    EXPECT_EQ(other->start("chief", 0).wait(), kProtocol) << other->log("chief", 0);
    EXPECT_THAT(other->log("chief", 0),
                AllOf(HasSubstr(said), HasSubstr("spec.storage.adopt to \\\"lab/one\\\"")));
    other->at("evaluator", 0).signal(SIGTERM);
    EXPECT_EQ(other->at("evaluator", 0).wait(), kTerminated);
    EXPECT_EQ(read_file(before.folder() / "result.json"), result);
    EXPECT_THAT(other->log("evaluator", 0), Not(HasSubstr("validation at step")));
  }
}

TEST(FolderTest, AJobThatIsMadeAgainAndHadFinishedEndsAtOnceWithItsResults) {
  Job before("folder-finished", small_training(), 1, 1, /*evaluator=*/true);
  name(before, "one");
  before.start_all();
  before.expect_success();
  const Json result = before.result();
  EXPECT_FALSE(result.contains("alreadyFinished"));
  const auto again =
      job_in(before, "one", "uid-2", small_training("checkpoint: {everySeconds: 3}\n"), 1, true);
  again->start_all();
  again->expect_success();
  EXPECT_EQ(again->result()["weightsDigest"], result["weightsDigest"]);
  EXPECT_EQ(again->result()["alreadyFinished"], true);
  EXPECT_THAT(again->log("chief", 0), HasSubstr("training was finished before"));
}

// Nothing is left to train, and the weights are not those that the manifest asks for.
TEST(FolderTest, AFinishedTrainingThatIsAdoptedWithOtherValuesIsRefused) {
  Job before("folder-adopted", with_rate("0.001"), 1, 1);
  name(before, "one");
  before.start_all();
  before.expect_success();
  const std::string result = read_file(before.folder() / "result.json");
  const auto other = job_in(before, "two", "uid-2", with_rate("0.01"));
  EXPECT_EQ(other->start("chief", 0, {{"MUSTER_ADOPT", "lab/one"}}).wait(), kBadInput);
  EXPECT_THAT(other->log("chief", 0),
              AllOf(HasSubstr("optimizer.learningRate (was 0.001, is 0.01)"),
                    HasSubstr("nothing is left to train")));
  EXPECT_EQ(read_file(before.folder() / "result.json"), result);
}

TEST(FolderTest, AJobThatIsMadeAgainGoesOnWhereTheFirstWasInterrupted) {
  Job undisturbed("folder-undisturbed", training_of_seconds(), 1, 1);
  undisturbed.start_all();
  undisturbed.expect_success();

  const std::string training = training_of_seconds();
  Job before("folder-interrupted", training, 1, 1);
  name(before, "one");
  before.start_all();
  // A disk may take longer for a checkpoint than the training for the rest of its epochs.
  ASSERT_TRUE(eventually([&] { return times(before.log("chief", 0), "epoch 1 done") > 0; }));
  before.at("chief", 0).signal(SIGTERM);
  // It is made again while the first one still leaves.
  const auto again = job_in(before, "one", "uid-2", training);
  again->start_all();
  EXPECT_EQ(before.at("chief", 0).wait(), kTerminated);
  again->expect_success();
  EXPECT_THAT(again->log("chief", 0), HasSubstr("which an earlier job (uid uid-1) has left"));
  EXPECT_EQ(again->result()["weightsDigest"], undisturbed.result()["weightsDigest"]);
  EXPECT_FALSE(again->result().contains("alreadyFinished"));
}

TEST(FolderTest, ANewcomerIsRefusedWhileTheOwnerLives) {
  const std::string training = small_training();
  Job owner("folder-alive", training, 1, 1);
  name(owner, "one");
  owner.start("ps", 0);
  owner.start("chief", 0);  // it waits for its worker
  ASSERT_TRUE(eventually([&] { return fs::exists(owner.folder() / "lease"); }));
  const auto newcomer = job_in(owner, "two", "uid-2", training);
  EXPECT_EQ(newcomer->start("chief", 0, {{"MUSTER_ADOPT", "lab/one"}}).wait(), kProtocol);
  EXPECT_THAT(newcomer->log("chief", 0), AllOf(HasSubstr("the job lab/one does now"),
                                               HasSubstr("its lease is being renewed")));
  owner.start("worker", 0);
  owner.expect_success();
}

// Its rank 0 sleeps for longer than a lease may be silent, and finds the folder taken.
TEST(FolderTest, AnOwnerThatIsDispossessedSaysSoAndEnds) {
  const std::string training = training_of_seconds();
  Job owner("folder-taken", training, 1, 0);
  name(owner, "one");
  owner.start_all();
  ASSERT_TRUE(owner.wait_for_checkpoints(1));
  owner.at("chief", 0).signal(SIGSTOP);
  const auto newcomer = job_in(owner, "two", "uid-2", training, 0);
  newcomer->start("ps", 0);
  newcomer->start("chief", 0, {{"MUSTER_ADOPT", "lab/one"}});
  ASSERT_TRUE(eventually(
      [&] { return read_file(owner.folder() / "owner.json").find("uid-2") != std::string::npos; }));
  owner.at("chief", 0).signal(SIGCONT);
  EXPECT_EQ(owner.at("chief", 0).wait(), kProtocol);
  EXPECT_THAT(owner.log("chief", 0), HasSubstr("the job lab/two (uid uid-2) has taken it"));
  newcomer->expect_success();
}

}  // namespace
}  // namespace muster::integration
