#include <gmock/gmock.h>
#include <signal.h>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"
#include "tests/unit/common/net/listener.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;

// What an undisturbed job comes to: the yardstick for those that lose somebody.
Json result_of_undisturbed(const std::string& name, const std::string& training) {
  Job job(name, training, 1, 1);
  job.start_all();
  job.expect_success();
  return job.result();
}

const Json& undisturbed_ps() {
  static const Json result = result_of_undisturbed("undisturbed", small_training());
  return result;
}

const Json& long_undisturbed_ps() {
  static const Json result = result_of_undisturbed("long-undisturbed", long_training());
  return result;
}

TEST(GroupTest, OnePsAChiefAndAWorkerLearnMnist) {
  const std::string mnist = std::string(MUSTER_SOURCE_DIR) + "/examples/data/mnist/";
  const auto source = [&](const std::string& set, const std::string& more) {
    return "{idx: {images: " + mnist + set + "-images-idx3-ubyte.gz, labels: " + mnist + set +
           "-labels-idx1-ubyte.gz}" + more + "}";
  };
  Job job("mnist",
          "model: {name: mnist-mlp}\nepochs: 1\nbatchSize: 32\ndata:\n  train: " +
              source("train", ", take: 20000") + "\n  validation: " +
              source("train", ", skip: 59000") + "\n  test: " + source("t10k", "") + "\n",
          1, 1, true);
  job.start_all();
  job.expect_success();
  EXPECT_EQ(job.result()["step"], 313);
  const Json evaluation = job.evaluation();
  EXPECT_TRUE(evaluation["final"].get<bool>());
  EXPECT_GT(evaluation["test"]["accuracy"].get<double>(), 0.91);
}

// 50,000 to 60,000 of MNIST's training images and then its 10,000 test images: one file for each of
// two members, who take turns with batches of 32 in 313 steps.
std::string training_by_file(const std::string& more) {
  const std::string mnist = std::string(MUSTER_SOURCE_DIR) + "/examples/data/mnist/";
  const auto files = [&](const std::string& set) {
    return "{images: " + mnist + set + "-images-idx3-ubyte.gz, labels: " + mnist + set +
           "-labels-idx1-ubyte.gz}";
  };
  return "model: {name: mnist-mlp}\nepochs: 1\nbatchSize: 32\ndata:\n  train: {idx: {files: [" +
         files("train") + ", " + files("t10k") + "]}, skip: 50000, shard: file" + more + "}\n";
}

TEST(GroupTest, MembersTrainOnFilesOfTheirOwnWhereverTheyKeepThem) {
  Job cached("by-file", training_by_file(""), 1, 1);
  cached.start_all();
  cached.expect_success();
  EXPECT_EQ(cached.result()["step"], 313);
  EXPECT_LT(cached.result()["trainLoss"], 0.6);
  Job job("by-file-uncached", training_by_file(", cache: false"), 1, 1);
  job.start_all();
  job.expect_success();
  expect_same(job, cached.result());
}

TEST(GroupTest, MembersThatAreMoreThanTheFilesAreRefused) {
  Job job("too-few-files", training_by_file(", take: 10000"), 1, 1);
  job.start("ps", 0);
  EXPECT_EQ(job.start("chief", 0).wait(), 65);
  EXPECT_THAT(job.log("chief", 0),
              HasSubstr("data.train.shard: file: expected at least 2 files with samples, one for "
                        "each that computes a batch of a step, found 1"));
}

TEST(GroupTest, TheNumberOfShardsDoesNotChangeTheBits) {
  Job job("two-shards", small_training(), 2, 1);
  job.start_all();
  job.expect_success();
  expect_same(job, undisturbed_ps());
}

TEST(GroupTest, WhatCarriesTheBytesDoesNotChangeTheBits) {
  Job job("mixed", small_training(), 2, 1);
  job.start("ps", 0);
  job.start("ps", 1, {{"MUSTER_SHARED_MEMORY", "0"}});
  job.start("chief", 0);
  job.start("worker", 0, {{"MUSTER_SHARED_MEMORY", "0"}});
  job.expect_success();
  expect_same(job, undisturbed_ps());
  EXPECT_THAT(job.log("chief", 0), HasSubstr("exchange through shared memory"));
  EXPECT_THAT(job.log("chief", 0), HasSubstr("the ps is told not to use it"));
  EXPECT_THAT(job.log("worker", 0), HasSubstr("exchange through gRPC"));
}

// Checkpoints that somebody asks for, in a chief that begins and in one that takes its place.
TEST(GroupTest, ACheckpointOnDemandIsTakenOnceAndChangesNoBits) {
  Job job("on-demand", long_training("checkpoint: {everySeconds: null}\n"), 2, 1);
  const std::filesystem::path request = job.folder() / "request";
  job.environment["MUSTER_CHECKPOINT_REQUEST"] = request;
  write_file_atomically(request, "first");
  const auto times_met = [&] {
    const std::string log = job.log("chief", 0);
    const std::string text = "is the checkpoint that was asked for (\\\"first\\\")";
    int times = 0;
    for (size_t at = 0; (at = log.find(text, at)) != std::string::npos; ++at) ++times;
    return times;
  };
  job.start_all();
  ASSERT_TRUE(eventually([&] { return times_met() == 1; })) << job.log("chief", 0);
  job.kill("chief", 0);
  job.start("chief", 0);
  job.expect_success();
  expect_same(job, long_undisturbed_ps());
  EXPECT_EQ(times_met(), 1) << job.log("chief", 0);
  const std::string checkpoint = job.result()["checkpoint"];
  const Json manifest = Document::load(job.folder() / checkpoint / "manifest.json").value();
  EXPECT_EQ(manifest["request"], "first");
}

// Nobody has told it to leave, and rank 0 is all that it hears of: it may run where nobody reaches
// it.
TEST(GroupTest, APsWhosePlaceAnotherAttemptHasTakenEndsItself) {
  Job job("replaced-ps", long_training(), 1, 1);
  job.start("ps", 0);
  const std::unique_ptr<Process> elder = job.release("ps", 0);
  ASSERT_TRUE(eventually([&] { return job.log("ps", 0).find("serving at") != std::string::npos; }));
  job.cluster["ps"][0] = free_address();
  job.start_all();
  EXPECT_EQ(elder->wait(), kProtocol);
  EXPECT_THAT(job.log("ps", 0), HasSubstr("expected attempt 1 or later of ps 0, found attempt 0"));
  job.expect_success();
}

TEST(GroupTest, AsyncMembersTrainOnEveryBatch) {
  Job job("async", small_training("synchronization: {policy: async}\n"), 2, 2);
  job.start_all();
  job.expect_success();
  EXPECT_EQ(job.result()["step"], 2500);
  EXPECT_GT(job.evaluation()["test"]["accuracy"].get<double>(), 0.8);
  const std::string checkpoint = job.result()["checkpoint"];
  const Json manifest = Document::load(job.folder() / checkpoint / "manifest.json").value();
  const Json last = manifest["position"]["sums"].back();
  EXPECT_EQ(last["epoch"], 1);
  EXPECT_EQ(last["rows"], 20000);
  EXPECT_EQ(job.result()["trainLoss"], Json(last["loss"].get<double>() / 20000));
}

TEST(GroupTest, WithoutAChiefWorkerZeroLeads) {
  Job job("leaderless", small_training(), 1, 2);
  job.cluster.erase("chief");
  job.start("ps", 0);
  job.start("worker", 0);
  job.start("worker", 1);
  job.expect_success();
  expect_same(job, undisturbed_ps());
}

// Names that DNS does not have, as it does not yet when the pods of a job have just begun.
TEST(GroupTest, FindsItselfByTheAddressesItsReplicasKnow) {
  Job job("nameless", small_training(), 2, 1);
  for (auto& [role, addresses] : job.cluster.items())
    for (auto& address : addresses) {
      const std::string text = address;
      address = role + ".test.invalid" + text.substr(text.rfind(':'));
    }
  job.environment = {{"MUSTER_POD_IP", "127.0.0.1"}, {"MUSTER_REPLICATION", "2"}};
  job.start_all();
  job.expect_success();
  expect_same(job, undisturbed_ps());
  EXPECT_FALSE(std::filesystem::exists(job.folder() / "rendezvous.json"));
}

TEST(GroupTest, StoppedItSavesAndRunAgainItGoesOnWithTheSameBits) {
  {
    Job job("stopped", long_training("checkpoint: {everySteps: 200}\n"), 2, 1);
    job.start_all();
    ASSERT_TRUE(job.wait_for_checkpoints(1));
    for (const auto& [role, index] :
         std::vector<Job::Replica>{{"worker", 0}, {"chief", 0}, {"ps", 0}, {"ps", 1}})
      job.at(role, index).signal(SIGTERM);
    for (const auto& [role, index] :
         std::vector<Job::Replica>{{"worker", 0}, {"chief", 0}, {"ps", 0}, {"ps", 1}})
      EXPECT_EQ(job.at(role, index).wait(), 143) << job.log(role, index);
    EXPECT_FALSE(std::filesystem::exists(job.folder() / "result.json"));
  }
  // Onto another number of shards, at that.
  Job again("stopped", long_training("checkpoint: {everySteps: 200}\n"), 1, 1, false, true);
  again.start_all();
  again.expect_success();
  EXPECT_THAT(again.log("chief", 0), HasSubstr("opened from ckpt-"));
  expect_same(again, long_undisturbed_ps());
}

constexpr const char* kReplicated = "2 of 2 shards have a second copy";

struct Replicated {
  const char* name;
  const char* environment;  // MUSTER_SHARED_MEMORY
};

class ReplicationTest : public testing::TestWithParam<Replicated> {};

// Each ps in turn, the second when the first one's successor has copies of both shards. The
// checkpoints are there to be restored from by mistake.
TEST_P(ReplicationTest, ALostPsIsReplacedByItsStandbyWithNoStepRepeated) {
  Job job(std::string("replicated-") + GetParam().name,
          long_training("checkpoint: {everySteps: 150, keep: 50}\n"), 2, 1);
  job.environment = {{"MUSTER_REPLICATION", "2"}, {"MUSTER_SHARED_MEMORY", GetParam().environment}};
  job.start_all();
  for (int lost = 0; lost < 2; ++lost) {
    const auto whole = static_cast<size_t>(lost) + 1;
    ASSERT_TRUE(eventually([&] { return times(job.log("chief", 0), kReplicated) >= whole; }))
        << job.log("chief", 0);
    job.kill("ps", lost);
    const std::string goes_on = "goes on with its copy of shard " + std::to_string(lost);
    ASSERT_TRUE(eventually([&] { return times(job.log("chief", 0), goes_on) > 0; }))
        << job.log("chief", 0);
    job.start("ps", lost);
  }
  job.expect_success();
  expect_same(job, long_undisturbed_ps());
  EXPECT_EQ(times(job.log("chief", 0), "opened from ckpt-"), 0u) << job.log("chief", 0);
  EXPECT_EQ(times(job.log("chief", 0), "opened from the beginning"), 1u);
}

INSTANTIATE_TEST_SUITE_P(Ways, ReplicationTest,
                         testing::Values(Replicated{"shared", "1"}, Replicated{"grpc", "0"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(GroupTest, AsyncMembersTrainOnEveryBatchWhereAPsIsLostThatHasAStandby) {
  Job job("async-replicated",
          long_training("synchronization: {policy: async}\ncheckpoint: {everySteps: 200}\n"), 2, 2);
  job.environment = {{"MUSTER_REPLICATION", "2"}};
  job.start_all();
  ASSERT_TRUE(eventually([&] { return times(job.log("chief", 0), kReplicated) >= 1; }));
  job.kill("ps", 0);
  job.start("ps", 0);
  job.expect_success();
  EXPECT_GE(job.result()["step"], 20000);
  EXPECT_EQ(times(job.log("chief", 0), "opened from ckpt-"), 0u) << job.log("chief", 0);
}

struct Loss {
  const char* name;
  const char* role;
  int signal;
};

class LossTest : public testing::TestWithParam<Loss> {};

TEST_P(LossTest, AReplicaThatComesBackCostsNoBit) {
  const Loss& loss = GetParam();
  Job job(std::string("lost-") + loss.name,
          long_training("checkpoint: {everySteps: 150, keep: 50}\n"), 2, 1);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.at(loss.role, 0).signal(loss.signal);
  job.at(loss.role, 0).wait();
  job.start(loss.role, 0);
  job.expect_success();
  expect_same(job, long_undisturbed_ps());
}

INSTANTIATE_TEST_SUITE_P(Roles, LossTest,
                         testing::Values(Loss{"worker_killed", "worker", SIGKILL},
                                         Loss{"ps_killed", "ps", SIGKILL},
                                         Loss{"chief_killed", "chief", SIGKILL},
                                         Loss{"worker_stopped", "worker", SIGTERM},
                                         Loss{"ps_stopped", "ps", SIGTERM},
                                         Loss{"chief_stopped", "chief", SIGTERM}),
                         [](const auto& info) { return std::string(info.param.name); });

// There is no checkpoint yet: what the steps before were trained on, only the shards remember.
class LateLossTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(LateLossTest, AChiefThatComesBackKnowsTheLastEpochsLoss) {
  const auto& [name, line] = GetParam();
  const Json& expected = long_undisturbed_ps();
  for (int attempt = 0; attempt < 10; ++attempt) {
    Job job(std::string("lost-") + name, long_training(), 2, 1);
    job.start_all();
    ASSERT_TRUE(eventually([&] { return job.log("chief", 0).find(line) != std::string::npos; }));
    job.kill("chief", 0);
    if (std::filesystem::exists(job.folder() / "result.json")) continue;  // too late
    job.start("chief", 0);
    job.expect_success();
    return expect_same(job, expected);
  }
  FAIL() << "ten times the chief was killed too late";
}

INSTANTIATE_TEST_SUITE_P(Times, LateLossTest,
                         testing::Values(std::pair("in_the_last_epoch", "epoch 1 done"),
                                         std::pair("after_the_last_step", "epoch 2 done")),
                         [](const auto& info) { return std::string(info.param.first); });

void truncate_manifests(const Job& job) {
  for (const auto& entry : std::filesystem::directory_iterator(job.folder() / "checkpoints"))
    if (const auto manifest = entry.path() / "manifest.json"; std::filesystem::exists(manifest))
      std::filesystem::resize_file(manifest, 100);
}

TEST(GroupTest, WhatTheShardsHoldIsAsGoodWhereEveryCheckpointIsDamaged) {
  Job job("damaged-shards-live", long_training("checkpoint: {everySteps: 150}\n"), 2, 1);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill("chief", 0);
  ASSERT_FALSE(std::filesystem::exists(job.folder() / "result.json")) << "killed too late";
  truncate_manifests(job);
  job.start("chief", 0);
  job.expect_success();
  EXPECT_THAT(job.log("chief", 0), HasSubstr("opened from what the shards hold"));
  EXPECT_THAT(job.log("chief", 0), HasSubstr("is passed over"));
  expect_same(job, long_undisturbed_ps());
}

TEST(GroupTest, WhereAShardIsLostTooEverybodyIsToldWhatIsDamaged) {
  Job job("damaged-shard-lost", long_training("checkpoint: {everySteps: 150}\n"), 2, 1);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  for (const char* role : {"chief", "ps"}) {
    job.kill(role, 0);
  }
  ASSERT_FALSE(std::filesystem::exists(job.folder() / "result.json")) << "killed too late";
  truncate_manifests(job);
  job.start("chief", 0);  // it may know before the worker is back
  job.start("ps", 0);
  for (const char* role : {"chief", "worker"}) {
    EXPECT_EQ(job.at(role, 0).wait(), 65) << job.log(role, 0);
    EXPECT_THAT(job.log(role, 0), HasSubstr("found only damaged ones"));
  }
}

class AsyncLossTest : public testing::TestWithParam<const char*> {};

TEST_P(AsyncLossTest, AReplicaThatComesBackLosesNoBatch) {
  Job job(std::string("async-lost-") + GetParam(),
          long_training("checkpoint: {everySteps: 300}\nsynchronization: {policy: async}\n"), 1, 2);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill(GetParam(), 0);
  job.start(GetParam(), 0);
  job.expect_chief_success();
  EXPECT_GE(job.result()["step"].get<int>(), 20000);
}

INSTANTIATE_TEST_SUITE_P(Roles, AsyncLossTest, testing::Values("worker", "ps", "chief"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace muster::integration
