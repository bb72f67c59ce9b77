#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>

#include "common/system/file.h"
#include "tests/integration/trainer/job.h"
#include "tests/unit/common/net/listener.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;

constexpr char kRounded[] = "synchronization: {wire: bfloat16}\n";

Json result_of(const std::string& name, const std::string& training, int workers,
               const Job::Environment& environment = {}) {
  Job job(name, training, 0, workers);
  job.environment = environment;
  job.start_all();
  job.expect_success();
  return job.result();
}

const Json& undisturbed() {
  static const Json result = result_of("collective", small_training(), 1);
  return result;
}

std::string training_of_epochs(int epochs, const std::string& more = "") {
  std::string text = long_training(more);
  text.replace(text.find("epochs: 2"), 9, "epochs: " + std::to_string(epochs));
  return text;
}

const Json& long_undisturbed() {
  static const Json result = result_of("collective-long", long_training(), 1);
  return result;
}

void expect_same(const Json& result, const Json& expected) {
  for (const char* field : {"step", "weightsDigest", "trainLoss"})
    EXPECT_EQ(result[field], expected[field]) << field;
}

// Long enough for a group to change its size several times.
std::string lasting_training() {
  return training_of_epochs(40);
}

std::string elastic(int least, int most, const std::string& batch = "global") {
  return Json{{"minReplicas", least}, {"maxReplicas", most}, {"batch", batch}}.dump();
}

// The result of any elastic group of at most four members, because the bits do not depend on its
// size.
const Json& lasting_undisturbed() {
  static const Json result =
      result_of("collective-lasting", lasting_training(), 1, {{"MUSTER_ELASTIC", elastic(0, 3)}});
  return result;
}

// A worker more than the job began with.
Process& start_another(Job& job, int index) {
  while (static_cast<int>(job.cluster["worker"].size()) <= index)
    job.cluster["worker"].push_back("127.0.0.1:" + std::to_string(free_port()));
  return job.start("worker", index);
}

// Of how many members the generations have been that were opened so far, in order; but for the
// first `before`.
std::vector<int> generations(const Job& job, size_t before = 0) {
  const std::string log = job.log("chief", 0);
  const std::string opened = " members opened";
  std::vector<int> members;
  for (size_t at = log.find(opened); at != std::string::npos; at = log.find(opened, at + 1))
    members.push_back(std::stoi(log.substr(log.rfind(' ', at - 1))));
  members.erase(members.begin(),
                members.begin() + static_cast<std::ptrdiff_t>(std::min(before, members.size())));
  return members;
}

// Waits for a generation of so many members, other than the first `before`.
bool opens(const Job& job, int members, size_t before = 0) {
  return eventually([&] {
    const std::vector<int> later = generations(job, before);
    return std::find(later.begin(), later.end(), members) != later.end();
  });
}

TEST(CollectiveTest, HasTheBitsOfAParameterServer) {
  Job job("collective-ps", small_training(), 1, 1);
  job.start_all();
  job.expect_success();
  expect_same(job.result(), undisturbed());
}

TEST(CollectiveTest, WhatCarriesTheBytesDoesNotChangeTheBits) {
  for (const bool by_tcp : {false, true}) {
    Job job(by_tcp ? "collective-tcp" : "collective-memory", small_training(), 0, 1);
    if (by_tcp) job.environment = kByTcp;
    job.start_all();
    job.expect_success();
    EXPECT_THAT(job.log("chief", 0),
                HasSubstr(by_tcp ? R"("sharedMemory":false)" : R"("sharedMemory":true)"));
    expect_same(job.result(), undisturbed());
  }
}

TEST(CollectiveTest, ACheckpointOnDemandDoesNotChangeTheBits) {
  Job job("collective-on-demand", long_training("checkpoint: {everySeconds: null}\n"), 0, 1);
  job.environment["MUSTER_CHECKPOINT_REQUEST"] = job.folder() / "request";
  write_file_atomically(job.folder() / "request", "now");
  job.start_all();
  job.expect_success();
  EXPECT_EQ(times(job.log("chief", 0), "is the checkpoint that was asked for"), 1u);
  expect_same(job.result(), long_undisturbed());
}

// Two logical replicas each time; a machine with a GPU may have no second one.
TEST(CollectiveTest, RoundedToBfloat16TheBitsAreTheSameWhereverReplicasAreComputed) {
  const std::string training = small_training(kRounded) + "device: cpu\n";
  const Json by_memory = result_of("collective-bfloat16", training, 1);
  EXPECT_NE(by_memory["weightsDigest"], undisturbed()["weightsDigest"]);
  EXPECT_EQ(by_memory["step"], undisturbed()["step"]);
  expect_same(result_of("collective-bfloat16-tcp", training, 1, kByTcp), by_memory);
  expect_same(result_of("collective-bfloat16-devices", training + "devices: 2\n", 0), by_memory);
}

TEST(CollectiveTest, SeveralBatchesAStepAreAddedUp) {
  const std::string training = small_training("gradientAccumulation: 3\n");
  const Json by_memory = result_of("collective-accumulation", training, 2);
  expect_same(result_of("collective-accumulation-tcp", training, 2, kByTcp), by_memory);
}

class CollectiveLossTest : public testing::TestWithParam<std::pair<const char*, bool>> {};

TEST_P(CollectiveLossTest, WhoIsKilledComesBackAndTheBitsAreTheSame) {
  static const Json expected = result_of("collective-lost-none", training_of_epochs(4), 1);
  const auto& [role, by_tcp] = GetParam();
  Job job(std::string("collective-lost-") + role + (by_tcp ? "-tcp" : ""), training_of_epochs(4), 0,
          1);
  if (by_tcp) job.environment = kByTcp;
  job.start_all();
  ASSERT_TRUE(opens(job, 2));
  for (int kill = 0; kill < 3; ++kill) {
    // The others may come before the first step, when there is nothing to take over.
    if (kill == 2) {
      ASSERT_TRUE(eventually([&] { return times(job.log("chief", 0), "epoch 1 done") > 0; }));
    }
    const size_t before = generations(job).size();
    job.kill(role, 0);
    job.start(role, 0);
    ASSERT_TRUE(opens(job, 2, before)) << job.log("chief", 0);
  }
  job.expect_success();
  expect_same(job.result(), expected);
  EXPECT_THAT(job.log("chief", 0), HasSubstr("opened from what rank"));
}

INSTANTIATE_TEST_SUITE_P(Replicas, CollectiveLossTest,
                         testing::Values(std::pair("chief", false), std::pair("chief", true),
                                         std::pair("worker", false), std::pair("worker", true)));

TEST(CollectiveTest, AllKilledGoOnFromTheCheckpoint) {
  Job job("collective-all-lost", long_training("checkpoint: {everySteps: 500}\n"), 0, 1);
  job.start_all();
  ASSERT_TRUE(job.wait_for_checkpoints(1));
  job.kill("chief", 0);
  job.kill("worker", 0);
  job.start("worker", 0);
  job.start("chief", 0);
  job.expect_success();
  expect_same(job.result(), long_undisturbed());
  EXPECT_THAT(job.log("chief", 0), HasSubstr("opened from checkpoints/ckpt-"));
}

TEST(CollectiveTest, StoppedAndStartedAgain) {
  Job job("collective-stopped", long_training(), 0, 1);
  job.start_all();
  ASSERT_TRUE(opens(job, 2));
  job.at("worker", 0).signal(SIGTERM);
  EXPECT_EQ(job.at("worker", 0).wait(), 143);
  job.at("chief", 0).signal(SIGTERM);
  EXPECT_EQ(job.at("chief", 0).wait(), 143);
  job.start("chief", 0);
  job.start("worker", 0);
  job.expect_success();
  expect_same(job.result(), long_undisturbed());
}

// Those who leave a group that is stopped are not the beginning of another generation, in which
// nothing would have been saved.
TEST(CollectiveTest, AnElasticGroupThatIsStoppedSavesWhatThereIs) {
  Job job("collective-elastic-stopped", lasting_training(), 0, 2);
  job.environment = {{"MUSTER_ELASTIC", elastic(0, 3)}};
  job.start_all();
  ASSERT_TRUE(eventually([&] { return times(job.log("chief", 0), "epoch 1 done") > 0; }));
  for (const int worker : {0, 1}) job.at("worker", worker).signal(SIGTERM);
  job.at("chief", 0).signal(SIGTERM);
  for (const int worker : {0, 1}) EXPECT_EQ(job.at("worker", worker).wait(), 143);
  EXPECT_EQ(job.at("chief", 0).wait(), 143);
  EXPECT_TRUE(job.wait_for_checkpoints(1)) << job.log("chief", 0);
  job.start_all();
  job.expect_success();
  EXPECT_THAT(job.log("chief", 0), HasSubstr("opened from checkpoints/ckpt-"));
  expect_same(job.result(), lasting_undisturbed());
}

class ElasticSizeTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Sums, ElasticSizeTest, testing::Values("", kRounded),
                         [](const auto& info) { return *info.param ? "Rounded" : "AsTheyAre"; });

TEST_P(ElasticSizeTest, AnElasticGroupHasTheSameBitsAtAnySize) {
  Json first;
  for (const int workers : {0, 1, 2, 3})
    for (const bool by_tcp : {false, true}) {
      Job job("collective-elastic-" + std::to_string(workers) + (*GetParam() ? "-rounded" : "") +
                  (by_tcp ? "-tcp" : ""),
              small_training(GetParam()), 0, workers);
      if (by_tcp) job.environment = kByTcp;
      job.environment["MUSTER_ELASTIC"] = elastic(0, 3);
      job.start_all();
      job.expect_success();
      EXPECT_THAT(generations(job), testing::Contains(1 + workers));
      if (first.is_null()) first = job.result();
      expect_same(job.result(), first);
    }
}

TEST(CollectiveTest, AnElasticGroupGrowsShrinksAndLosesWithTheSameBits) {
  for (const bool by_tcp : {false, true}) {
    Job job(by_tcp ? "collective-scaled-tcp" : "collective-scaled", lasting_training(), 0, 1);
    job.environment = {{"MUSTER_ELASTIC", elastic(0, 3)}};
    if (by_tcp) job.environment.insert(kByTcp.begin(), kByTcp.end());
    job.start_all();
    ASSERT_TRUE(opens(job, 2));
    start_another(job, 1);
    ASSERT_TRUE(opens(job, 3)) << job.log("worker", 1);
    size_t before = generations(job).size();
    job.at("worker", 1).signal(SIGTERM);
    EXPECT_EQ(job.at("worker", 1).wait(), 143);
    ASSERT_TRUE(opens(job, 2, before)) << job.log("chief", 0);
    before = generations(job).size();
    job.kill("worker", 0);
    ASSERT_TRUE(opens(job, 1, before)) << job.log("chief", 0);
    const pid_t pid = job.at("chief", 0).pid();
    before = generations(job).size();
    job.start("worker", 0);
    ASSERT_TRUE(opens(job, 2, before)) << job.log("chief", 0);
    EXPECT_EQ(job.at("worker", 0).wait(), 0) << job.log("worker", 0);
    EXPECT_EQ(job.at("chief", 0).wait(), 0) << job.log("chief", 0);
    EXPECT_EQ(job.at("chief", 0).pid(), pid);
    expect_same(job.result(), lasting_undisturbed());
  }
}

TEST(CollectiveTest, AnElasticGroupAtItsMinimumTrainsOnWithWhoIsLeaving) {
  Job job("collective-minimum", lasting_training(), 0, 1);
  job.environment = {{"MUSTER_ELASTIC", elastic(1, 3)}};
  const auto epochs = [&] { return times(job.log("chief", 0), " done at step "); };
  job.start_all();
  ASSERT_TRUE(opens(job, 2));
  job.at("worker", 0).signal(SIGTERM);
  ASSERT_TRUE(eventually([&] { return times(job.log("worker", 0), "we leave as soon as") > 0; }));
  const size_t before = epochs();
  // One may end before rank 0 has heard of it.
  ASSERT_TRUE(eventually([&] { return epochs() > before + 1; })) << job.log("chief", 0);
  EXPECT_EQ(generations(job).size(), 1u);
  start_another(job, 1);
  EXPECT_EQ(job.at("worker", 0).wait(), 143);
  EXPECT_EQ(job.at("worker", 1).wait(), 0) << job.log("worker", 1);
  EXPECT_EQ(job.at("chief", 0).wait(), 0) << job.log("chief", 0);
  expect_same(job.result(), lasting_undisturbed());
}

// Declared lost, it must join again, and can change nothing meanwhile.
TEST(CollectiveTest, APausedMemberOfAnElasticGroupComesBack) {
  Job job("collective-paused", lasting_training(), 0, 1);
  job.environment = {{"MUSTER_ELASTIC", elastic(0, 3)}};
  job.start_all();
  ASSERT_TRUE(opens(job, 2));
  size_t before = generations(job).size();
  job.at("worker", 0).signal(SIGSTOP);
  ASSERT_TRUE(opens(job, 1, before)) << job.log("chief", 0);
  before = generations(job).size();
  job.at("worker", 0).signal(SIGCONT);
  ASSERT_TRUE(opens(job, 2, before)) << job.log("chief", 0);
  job.expect_success();
  expect_same(job.result(), lasting_undisturbed());
}

// Rank 0 evaluates; what that came to is known to whoever it takes its state from.
TEST(CollectiveTest, EarlyStoppingIsTheSameWhoeverIsKilled) {
  const std::string training = training_of_epochs(
      30,
      "evaluation: {everyEpochs: 1}\nearlyStopping: {metric: validationLoss, patience: 2, "
      "minDelta: 0.01}\n");
  const Json expected = result_of("collective-early", training, 1);
  EXPECT_TRUE(expected["stoppedEarly"].get<bool>());
  EXPECT_GT(expected["epochs"], 2);
  EXPECT_LT(expected["epochs"], 30);
  for (const bool by_tcp : {false, true}) {
    Job job(by_tcp ? "collective-early-lost-tcp" : "collective-early-lost", training, 0, 1);
    if (by_tcp) job.environment = kByTcp;
    job.start_all();
    ASSERT_TRUE(eventually(
        [&] { return job.log("chief", 0).find("validation at step") != std::string::npos; }));
    const size_t before = generations(job).size();
    job.kill("chief", 0);
    job.start("chief", 0);
    job.expect_success();
    EXPECT_GT(generations(job).size(), before);
    expect_same(job.result(), expected);
    EXPECT_EQ(job.result()["epochs"], expected["epochs"]);
  }
}

TEST(CollectiveTest, ABatchPerReplicaFollowsTheGroup) {
  const Job::Environment environment = {{"MUSTER_ELASTIC", elastic(0, 3, "perReplica")}};
  const Json one = result_of("collective-per-replica-1", small_training(), 0, environment);
  const Json three = result_of("collective-per-replica-3", small_training(), 2, environment);
  EXPECT_EQ(one["step"], 2500);
  EXPECT_EQ(three["step"], 834);
}

// Wide enough for a second thread to make a difference.
std::string wide_training(const std::string& more = "") {
  std::string text = small_training(more);
  text.replace(text.find("units: 64"), 9, "units: 512");
  text.replace(text.find("samples: 20000"), 14, "samples: 3200");
  return text;
}

class OtherBitsTest : public testing::TestWithParam<int> {};

TEST_P(OtherBitsTest, WhoComputesThemIsNamed) {
  Job job("other-bits-" + std::to_string(GetParam()), wide_training(), GetParam(), 1);
  for (int ps = 0; ps < GetParam(); ++ps) job.start("ps", ps);
  job.start("chief", 0);
  job.start("worker", 0, {{"MUSTER_THREADS", "2"}});
  job.expect_success();
  EXPECT_THAT(job.log("chief", 0),
              testing::ContainsRegex("worker 0: expected what decides its results' bits to be "
                                     ".* 1 threads.*, found .* 2 threads.*: results will not be"));
}

TEST_P(OtherBitsTest, WhoWouldComputeThemIsRejectedWhereTheyMustBeTheSame) {
  Job job("other-bits-strict-" + std::to_string(GetParam()), wide_training("determinism: strict\n"),
          GetParam(), 1);
  for (int ps = 0; ps < GetParam(); ++ps) job.start("ps", ps);
  job.start("chief", 0);
  job.start("worker", 0, {{"MUSTER_THREADS", "2"}});
  EXPECT_EQ(job.at("worker", 0).wait(), 76);
  EXPECT_THAT(job.log("worker", 0),
              testing::ContainsRegex("determinism: strict: expected what decides its results' bits "
                                     "to be .* 1 threads.*, found .* 2 threads"));
  job.start("worker", 0);
  job.expect_success();
  EXPECT_THAT(job.log("chief", 0), testing::Not(HasSubstr("results will not be the same")));
}

INSTANTIATE_TEST_SUITE_P(ParameterServers, OtherBitsTest, testing::Values(0, 1));

TEST(CollectiveTest, WhoDoesNotBelongIsRejectedByName) {
  Job job("collective-strangers", long_training(), 0, 1);
  job.start("chief", 0);
  const auto expect_rejected = [&](const std::string& why) {
    EXPECT_EQ(job.at("worker", 0).wait(), 76);
    EXPECT_THAT(job.log("worker", 0), HasSubstr(why));
  };
  job.start("worker", 0, {{"MUSTER_JOB_UID", "uid-2"}});
  expect_rejected(R"(expected this job's uid, found \"uid-2\")");
  const std::string other = (job.folder() / "other.yaml").string();
  write_file_atomically(other, long_training("seed: 7\n"));
  job.start("worker", 0, {{"MUSTER_TRAINING", other}});
  expect_rejected("training.seed: expected 1 (an integer), found 7 (an integer)");
  job.start("worker", 0);
  job.expect_success();
  expect_same(job.result(), long_undisturbed());
}

}  // namespace
}  // namespace muster::integration
