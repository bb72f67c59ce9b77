#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

// A job whose directory has no room for `file` while its "faults" say "full".
class FullDiskTest : public testing::TestWithParam<const char*> {
 protected:
  FullDiskTest()
      : job_(manifest({{"chief", script("echo started > $EVENTS; read go < $GATE")}})),
        faults_(job_.folder() / "faults") {
    write_file_atomically(faults_, "");
    job_.set("LD_PRELOAD", MUSTER_STORAGE_FAULTS);
    job_.set("MUSTER_FAULTS", faults_.string());
    job_.set("MUSTER_FAULTS_BELOW", (job_.directory() / GetParam()).string());
    job_.set("ASAN_OPTIONS", "verify_asan_link_order=0");
  }
  ScriptJob job_;
  const std::filesystem::path faults_;
};

TEST_P(FullDiskTest, IsWaitedFor) {
  auto run = job_.run();
  EXPECT_EQ(job_.next_event(), "started");
  write_file_atomically(faults_, "full");
  job_.open_gate();
  run->await_output("No space left on device (will try again)");
  // Longer than it tries at once.
  std::this_thread::sleep_for(std::chrono::seconds(6));
  EXPECT_FALSE(run->has_ended()) << run->output();
  write_file_atomically(faults_, "");
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), testing::HasSubstr("script: Succeeded"));
  EXPECT_EQ(job_.state()["status"]["records"][0]["role"], "chief");
  EXPECT_EQ(Json::parse(read_text(job_.directory() / "summary.json"))["state"], "Succeeded");
}

// The replica does not end when it is asked to.
TEST(MusterRun, ends_at_the_second_signal_while_it_waits_for_a_full_disk) {
  ScriptJob job(manifest({{"chief", script("trap '' TERM; echo started > $EVENTS; "
                                           "read go < $GATE; while :; do sleep 0.1; done")}}));
  const std::filesystem::path faults = job.folder() / "faults";
  write_file_atomically(faults, "");
  job.set("LD_PRELOAD", MUSTER_STORAGE_FAULTS);
  job.set("MUSTER_FAULTS", faults.string());
  job.set("MUSTER_FAULTS_BELOW", (job.directory() / ".job.json").string());
  job.set("ASAN_OPTIONS", "verify_asan_link_order=0");
  auto run = job.run();
  EXPECT_EQ(job.next_event(), "started");
  write_file_atomically(faults, "full");
  run->signal(SIGINT);
  run->await_output("stopping: the replicas are asked to end; again to kill them now");
  run->await_output("No space left on device (will try again)");
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), 128 + SIGINT) << run->output();
  EXPECT_THAT(run->output(), testing::HasSubstr("gave up on script"));
}

// What they are called until they are whole.
INSTANTIATE_TEST_SUITE_P(Files, FullDiskTest, testing::Values(".job.json", ".summary.json"),
                         [](const auto& info) { return info.index == 0 ? "state" : "summary"; });

TEST(MusterRun, shows_that_a_full_disk_keeps_a_training_from_its_checkpoints) {
  ScriptJob job(manifest({{"chief", "{replicas: 1}"}}, R"(  training:
    model: {name: linear-regression}
    data: {train: {syntheticLinear: {samples: 1000}}}
    batchSize: 10
    steps: 1000000000
    checkpoint: {everySeconds: 0.2}
)"));
  const std::filesystem::path faults = job.folder() / "faults";
  write_file_atomically(faults, "full manifest");
  job.set("LD_PRELOAD", MUSTER_STORAGE_FAULTS);
  job.set("MUSTER_FAULTS", faults.string());
  job.set("MUSTER_FAULTS_BELOW", (job.directory() / "checkpoints").string());
  job.set("ASAN_OPTIONS", "verify_asan_link_order=0");
  auto run = job.run();
  run->await_output("warning: chief-0 waits for its storage since ");
  auto status = job.muster({"status", "run"});
  EXPECT_EQ(status->wait(), kSuccess);
  EXPECT_THAT(status->output(),
              testing::HasSubstr("Stalled (StorageHangs): chief-0 waits for its storage"));
  EXPECT_THAT(job.state()["status"]["cause"].get<std::string>(),
              testing::AllOf(testing::HasSubstr("no checkpoint since step"),
                             testing::HasSubstr("No space left on device")));
  write_file_atomically(faults, "");
  await_file(job.directory() / "checkpoints" / "checkpoint");
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), 128 + SIGINT) << run->output();
}

TEST(MusterRun, says_why_it_gives_up_when_its_directory_goes) {
  ScriptJob job(manifest({{"chief", script("echo started > $EVENTS; read go < $GATE")}}));
  auto run = job.run();
  EXPECT_EQ(job.next_event(), "started");
  std::error_code ignored;  // the run may be writing a file there at this moment
  while (std::filesystem::exists(job.directory()))
    std::filesystem::remove_all(job.directory(), ignored);
  job.open_gate();
  EXPECT_EQ(run->wait(), kCannotWrite);
  EXPECT_THAT(run->output(), testing::HasSubstr("gave up on script: cannot write " +
                                                (job.directory() / "job.json").string()));
}

}  // namespace
}  // namespace muster::test
