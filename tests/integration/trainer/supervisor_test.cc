// muster-supervisor as a container would run it, with scripts and with the trainer itself.

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "common/job/termination_message.h"
#include "common/system/file.h"
#include "tests/integration/trainer/job.h"

namespace muster::integration {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<pid_t> children_of(pid_t parent) {
  const std::string id = std::to_string(parent);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest()
      : folder_(scratch() / testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);  // of a run before, with --gtest_repeat
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "termination-log") << "of an earlier container, and quite long at that";
  }

  // `script` may append lines to $OUT, each with what it has to say.
  std::unique_ptr<Process> supervise(const std::string& script, const std::string& limit = "3",
                                     const std::string& role = "worker") {
    return std::make_unique<Process>(
        std::vector<std::string>{MUSTER_SUPERVISOR, "/bin/sh", "-c", script},
        Job::Environment{{"OUT", out().string()},
                         {"MUSTER_RESTARTS_IN_PLACE", limit},
                         {"MUSTER_ROLE", role},
                         {"MUSTER_STORAGE", folder_.string()},
                         {"MUSTER_TERMINATION_LOG", (folder_ / "termination-log").string()}},
        folder_ / "log", Process::Limits{});
  }
  std::filesystem::path out() const { return folder_ / "out"; }
  std::string said() const { return std::filesystem::exists(out()) ? read_file(out()) : ""; }
  bool says(const std::string& text) const {
    return eventually([&] { return said().find(text) != std::string::npos; });
  }
  std::string log() const { return read_file(folder_ / "log"); }
  TerminationMessage message() const {
    return TerminationMessage::parse(read_file(folder_ / "termination-log"));
  }
  // The process whose number the script has written as the n-th; 0: not yet.
  pid_t written(size_t n) const {
    std::istringstream text(said());
    const std::vector<pid_t> all{std::istream_iterator<pid_t>(text), {}};
    return n < all.size() && said().back() == '\n' ? all[n] : 0;
  }

  const std::filesystem::path folder_;
};

TEST_F(SupervisorTest, ASuccessEndsIt) {
  EXPECT_EQ(supervise("echo $MUSTER_RESTARTS >> $OUT")->wait(), 0);
  EXPECT_EQ(said(), "0\n");
  EXPECT_EQ(message(), TerminationMessage{});
}

TEST_F(SupervisorTest, ASuccessLeavesWhereTrainingEnded) {
  const std::string write =
      "echo '{\"step\": 1564, \"trainLoss\": 0.25, \"trainAccuracy\": 0.975}' "
      ">$MUSTER_STORAGE/result.json";
  EXPECT_EQ(supervise(write)->wait(), 0);
  EXPECT_EQ(message().progress, Json::parse(R"(
      {"step": 1564, "totalSteps": 1564, "etaSeconds": 0, "stepsHere": 1564, "loss": "0.25",
       "metrics": {"accuracy": 0.975}})"));
  EXPECT_EQ(supervise("exit 65")->wait(), 65);
  EXPECT_TRUE(message().progress.is_null());
  const std::string saved =
      "cd $MUSTER_STORAGE; mkdir -p c/d; touch -d 2026-01-02T03:04:05Z c/d; "
      "echo '{\"step\": 7, \"checkpoint\": \"c/d\"}' >result.json";
  EXPECT_EQ(supervise(saved)->wait(), 0);
  EXPECT_EQ(message().progress, Json::parse(R"(
      {"step": 7, "totalSteps": 7, "etaSeconds": 0, "stepsHere": 7, "lastCheckpointStep": 7,
       "lastCheckpointTime": "2026-01-02T03:04:05Z"})"));
  const std::string trained_before =
      "echo '{\"step\": 7, \"alreadyFinished\": true}' >$MUSTER_STORAGE/result.json";
  EXPECT_EQ(supervise(trained_before)->wait(), 0);
  EXPECT_EQ(message().progress, Json::parse(R"({"step": 7, "totalSteps": 7, "etaSeconds": 0})"));
}

TEST_F(SupervisorTest, ASuccessLeavesWhatTheTrainingHasComeTo) {
  const std::string write =
      "cd $MUSTER_STORAGE; echo '{\"step\": 7, \"model\": \"m/w\"}' >result.json";
  EXPECT_EQ(supervise(write)->wait(), 0);
  EXPECT_EQ(message().results,
            (Json{{"step", 7}, {"model", (folder_ / "m/w").string()}, {"exportedStep", 7}}));
  EXPECT_EQ(supervise("exit 65")->wait(), 65);
  EXPECT_TRUE(message().results.is_null());
}

TEST_F(SupervisorTest, AnEvaluatorLeavesItsFinalEvaluationHoweverItEnds) {
  const std::string write =
      "cd $MUSTER_STORAGE; mkdir evaluations; "
      "echo '{\"step\": 7, \"final\": true, \"test\": {\"loss\": 2}}' >evaluations/7.json; exit 65";
  EXPECT_EQ(supervise(write, "3", "evaluator")->wait(), 65);
  EXPECT_EQ(message().results, (Json{{"exportedStep", 7}, {"test", {{"loss", 2}}}}));
}

TEST_F(SupervisorTest, RestartsAreCountedAndLimited) {
  EXPECT_EQ(supervise("echo $MUSTER_RESTARTS $MUSTER_LAST_EXIT_CODE >> $OUT; "
                      "echo no disk $MUSTER_RESTARTS >&2; exit 73")
                ->wait(),
            73);
  EXPECT_EQ(said(), "0 0\n1 73\n2 73\n3 73\n");
  EXPECT_EQ(message(), (TerminationMessage{3, "no disk 3", {}}));
  EXPECT_THAT(log(), HasSubstr("no disk 0\n"));
  EXPECT_THAT(log(), HasSubstr("exit code 73 (a directory cannot be written or a disk is full); it "
                               "is restarted in place"));
}

TEST_F(SupervisorTest, WhatARestartCannotMendEndsIt) {
  EXPECT_EQ(
      supervise(
          "echo x >> $OUT; echo '{\"level\":\"error\",\"message\":\"no such field\"}' >&2; exit 65")
          ->wait(),
      65);
  EXPECT_EQ(said(), "x\n");
  EXPECT_EQ(message(), (TerminationMessage{0, "no such field", {}}));
}

TEST_F(SupervisorTest, OneThatIsKilledComesBack) {
  auto supervisor = supervise("echo $$ >> $OUT; [ $MUSTER_RESTARTS = 2 ] && exit 0; sleep 1000");
  for (size_t killed = 0; killed < 2; ++killed) {
    ASSERT_TRUE(eventually([&] { return written(killed) != 0; }));
    ::kill(written(killed), killed == 0 ? SIGKILL : SIGSEGV);
  }
  EXPECT_EQ(supervisor->wait(), 0);
  EXPECT_NE(written(0), written(1));
  EXPECT_EQ(message().restarts, 2);
  EXPECT_THAT(log(), HasSubstr("137 (terminated (SIGKILL)"));
  EXPECT_THAT(log(), HasSubstr("139 (terminated (SIGSEGV)"));
}

TEST_F(SupervisorTest, AskedToStopItHandsThatOnAndRestartsNothing) {
  for (const int number : {SIGTERM, SIGINT}) {
    std::filesystem::remove(out());
    auto supervisor = supervise(
        "trap 'echo saved >> $OUT; exit 143' TERM INT; echo ready >> $OUT; while :; do sleep 0.01; "
        "done");
    ASSERT_TRUE(says("ready"));
    supervisor->signal(number);
    EXPECT_EQ(supervisor->wait(), 143);
    EXPECT_EQ(said(), "ready\nsaved\n");
  }
}

TEST_F(SupervisorTest, OneThatFailsWhileItStopsIsNotRestarted) {
  auto supervisor = supervise(
      "trap 'echo failing >> $OUT; exit 73' TERM; echo ready >> $OUT; while :; do sleep 0.01; "
      "done");
  ASSERT_TRUE(says("ready"));
  supervisor->signal(SIGTERM);
  EXPECT_EQ(supervisor->wait(), 73);
  EXPECT_EQ(said(), "ready\nfailing\n");
}

TEST_F(SupervisorTest, ASignalWithoutAnEndIsHandedOnToo) {
  auto supervisor = supervise(
      "trap 'echo heard >> $OUT' USR1; trap 'exit 0' TERM; echo ready >> $OUT; while :; do sleep "
      "0.01; done");
  ASSERT_TRUE(says("ready"));
  supervisor->signal(SIGUSR1);
  ASSERT_TRUE(says("heard"));
  supervisor->signal(SIGTERM);
  EXPECT_EQ(supervisor->wait(), 0);
}

// A process that the script leaves behind must not hold its port or its files when the next one
// starts.
TEST_F(SupervisorTest, WhatIsLeftBehindEndsBeforeARestart) {
  auto supervisor = supervise(
      "if [ $MUSTER_RESTARTS = 0 ]; then sleep 1000 & echo $! >> $OUT; kill -KILL $$; fi; "
      "read left < $OUT; kill -0 $left 2>/dev/null && exit 3; exit 0",
      "1");
  EXPECT_EQ(supervisor->wait(), 0) << log();
}

TEST_F(SupervisorTest, ReapsOrphansWhileItsChildRuns) {
  auto supervisor = supervise(
      "trap 'exit 0' TERM; (setsid sh -c 'echo $$ >> $OUT' &); while :; do sleep 0.01; done");
  ASSERT_TRUE(eventually([&] { return written(0) != 0; }));
  EXPECT_TRUE(eventually([&] { return ::kill(written(0), 0) != 0; })) << "a zombie is left";
  supervisor->signal(SIGTERM);
  EXPECT_EQ(supervisor->wait(), 0);
}

TEST_F(SupervisorTest, WithoutRestartsItOnlyHandsOn) {
  EXPECT_EQ(supervise("kill -KILL $$", "0")->wait(), 137);
  EXPECT_EQ(message().restarts, 0);
}

TEST_F(SupervisorTest, ALimitThatIsNoneIsRefused) {
  for (const char* limit : {"x", "-1", "3x", "99999999999"}) {
    EXPECT_EQ(supervise("echo x >> $OUT", limit)->wait(), 78) << limit;
    EXPECT_THAT(log(), HasSubstr(std::string("found \\\"") + limit)) << limit;
  }
  EXPECT_EQ(said(), "");
}

TEST_F(SupervisorTest, AProgramThatIsNotThereIsNotTriedAgain) {
  Process supervisor({MUSTER_SUPERVISOR, "no-such-program"}, {}, folder_ / "log", {});
  EXPECT_EQ(supervisor.wait(), 127);
  EXPECT_THAT(log(), HasSubstr("cannot run no-such-program: No such file"));
  EXPECT_THAT(log(), HasSubstr("it is not restarted in place"));
}

TEST_F(SupervisorTest, OneThatClosesItsStandardErrorCostsNoProcessor) {
  auto supervisor =
      supervise("exec 2>&-; trap 'exit 0' TERM; echo ready >> $OUT; while :; do sleep 0.01; done");
  ASSERT_TRUE(says("ready"));
  supervisor->signal(SIGTERM);
  EXPECT_EQ(supervisor->wait(), 0);
}

// The group's view: a member that is killed under its supervisor is back in its place without
// anybody else's help, and the bits are the same.
TEST_F(SupervisorTest, ATrainerThatIsKilledRejoinsItsGroup) {
  const std::string training = long_training("checkpoint: {everySteps: 150, keep: 50}\n");
  Job calm("supervised-calm", training, 1, 1);
  calm.start_all();
  calm.expect_success();
  Job job("supervised", training, 1, 1);
  job.launcher = {MUSTER_SUPERVISOR};
  job.start_all();
  for (const char* role : {"worker", "ps", "chief"}) {
    ASSERT_TRUE(job.wait_for_checkpoints(1));
    const std::vector<pid_t> children = children_of(job.at(role, 0).pid());
    ASSERT_EQ(children.size(), 1u) << role;
    ::kill(children[0], SIGKILL);
    ASSERT_TRUE(eventually([&] {
      return job.log(role, 0).find("it is restarted in place") != std::string::npos;
    })) << job.log(role, 0);
    ASSERT_FALSE(std::filesystem::exists(job.folder() / "result.json")) << "killed too late";
  }
  job.expect_success();
  for (const char* field : {"step", "weightsDigest", "trainLoss"})
    EXPECT_EQ(job.result()[field], calm.result()[field]) << field;
}

}  // namespace
}  // namespace muster::integration
