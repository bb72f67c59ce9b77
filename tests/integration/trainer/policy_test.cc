#include <gmock/gmock.h>
#include <signal.h>

#include "tests/integration/trainer/job.h"

namespace muster::integration {
namespace {

std::string training_by(const std::string& synchronization) {
  return long_training("checkpoint: {everySteps: 100, keep: 50}\nsynchronization: {" +
                       synchronization + "}\n");
}

constexpr int kBatches = 20000;  // of long_training, in all epochs

constexpr int kStepsOfThree = 6668;  // two epochs, three batches a step

TEST(PolicyTest, WithABackupWorkerTheGroupGoesOnWithoutOneThatSleeps) {
  Job job("backup-asleep", training_by("policy: sync, backupWorkers: 1"), 1, 2);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.at("worker", 1).signal(SIGSTOP);
  EXPECT_EQ(job.at("chief", 0).wait(), 0) << job.log("chief", 0);
  EXPECT_EQ(job.result()["step"], kStepsOfThree);
  EXPECT_GT(job.evaluation()["test"]["accuracy"].get<double>(), 0.8);
  job.at("worker", 1).signal(SIGCONT);
  job.expect_success();
}

// It was there before the end, so that it found no final checkpoint when it started.
TEST(PolicyTest, ABackupWorkerThatSleptFromItsStartToTheJobsEndEnds) {
  Job job("backup-never-there", training_by("policy: sync, backupWorkers: 1"), 1, 2);
  job.start("worker", 1);
  ASSERT_TRUE(eventually([&] {
    return job.log("worker", 1).find("waiting for the rendezvous") != std::string::npos;
  }));
  job.at("worker", 1).signal(SIGSTOP);
  job.start("ps", 0);
  job.start("chief", 0);
  job.start("worker", 0);
  EXPECT_EQ(job.at("chief", 0).wait(), 0) << job.log("chief", 0);
  job.at("worker", 1).signal(SIGCONT);
  job.expect_success();
}

TEST(PolicyTest, WithABackupWorkerWhoComesBackJoinsAGroupThatWentOn) {
  Job job("backup-killed", training_by("policy: sync, backupWorkers: 1"), 1, 2);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill("worker", 0);
  ASSERT_TRUE(eventually([&] { return times(job.log("chief", 0), "epoch 1 done") > 0; }))
      << job.log("chief", 0);
  job.start("worker", 0);
  job.expect_success();
  EXPECT_EQ(job.result()["step"], kStepsOfThree);
}

class BackupLossTest : public testing::TestWithParam<const char*> {};

TEST_P(BackupLossTest, AReplicaOfAJobOfTwoShardsThatComesBackCostsNoStep) {
  Job job(std::string("backup-lost-") + GetParam(), training_by("policy: sync, backupWorkers: 1"),
          2, 2);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill(GetParam(), 0);
  job.start(GetParam(), 0);
  job.expect_success();
  EXPECT_EQ(job.result()["step"], kStepsOfThree);
}

INSTANTIATE_TEST_SUITE_P(Roles, BackupLossTest, testing::Values("worker", "ps", "chief"),
                         [](const auto& info) { return std::string(info.param); });

// A machine with a GPU may have no second one.
std::string on_cpus(const std::string& training) {
  return training + "device: cpu\n";
}

// Devices of one member are added up before the members are: by two and two, as four members are.
TEST(PolicyTest, SeveralDevicesOfAMemberTrainAsSoManyMembersAndSurviveItsLoss) {
  const std::string training = on_cpus(training_by("policy: sync"));
  Job members("devices-none", training, 2, 3);
  members.start_all();
  members.expect_success();
  Job devices("devices-two", training + "devices: 2\n", 2, 1);
  devices.start_all();
  ASSERT_TRUE(devices.wait_for_checkpoints(1));
  devices.kill("worker", 0);
  devices.start("worker", 0);
  devices.expect_success();
  EXPECT_EQ(devices.result()["step"], members.result()["step"]);
  EXPECT_EQ(devices.result()["weightsDigest"], members.result()["weightsDigest"]);
}

TEST(PolicyTest, AsynchronouslyATicketIsABatchForEachDevice) {
  Job job("devices-async", on_cpus(training_by("policy: async")) + "devices: 2\n", 2, 2);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill("worker", 0);
  job.start("worker", 0);
  job.expect_success();
  // The ticket that the worker held is handed out again.
  EXPECT_GE(job.result()["step"].get<int>(), kBatches / 2);
  EXPECT_LT(job.result()["step"].get<int>(), kBatches / 2 + 100);
  EXPECT_GT(job.evaluation()["test"]["accuracy"].get<double>(), 0.8);
}

TEST(PolicyTest, BoundedStalenessTrainsOnEveryBatch) {
  Job job("bounded", training_by("policy: boundedStaleness, maxStaleness: 1"), 2, 2);
  job.start_all();
  job.expect_success();
  EXPECT_EQ(job.result()["step"], kBatches);
  EXPECT_GT(job.evaluation()["test"]["accuracy"].get<double>(), 0.8);
}

// Two runs through gRPC and one through shared memory.
TEST(PolicyTest, RoundedToBfloat16AJobConvergesToTheSameBitsWhateverCarriesThem) {
  std::string digest;
  for (const char* shared_memory : {"0", "0", "1"}) {
    Job job("bfloat16", training_by("policy: sync, wire: bfloat16"), 2, 1);
    const std::map<std::string, std::string> way = {{"MUSTER_SHARED_MEMORY", shared_memory}};
    job.start("ps", 0, way);
    job.start("ps", 1, way);
    job.start("chief", 0, way);
    job.start("worker", 0, way);
    job.expect_success();
    EXPECT_GT(job.evaluation()["test"]["accuracy"].get<double>(), 0.8);
    const std::string found = job.result()["weightsDigest"];
    if (digest.empty()) digest = found;
    EXPECT_EQ(found, digest) << shared_memory;
  }
}

class ManyShardsLossTest : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ManyShardsLossTest, AReplicaThatComesBackLosesNoBatch) {
  const auto& [policy, role] = GetParam();
  Job job(std::string(policy) + "-lost-" + role, training_by(std::string("policy: ") + policy), 2,
          2);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill(role, 0);
  job.start(role, 0);
  job.expect_chief_success();
  EXPECT_GE(job.result()["step"].get<int>(), kBatches);
}

INSTANTIATE_TEST_SUITE_P(Policies, ManyShardsLossTest,
                         testing::Combine(testing::Values("async", "boundedStaleness"),
                                          testing::Values("worker", "ps", "chief")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::get<1>(info.param);
                         });

}  // namespace
}  // namespace muster::integration
