#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/exit_code.h"
#include "common/job/time_use.h"
#include "common/system/file.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

constexpr const char* kLine = R"(  training:
    model: {name: linear-regression}
    data: {train: {syntheticLinear: {samples: 1000}}}
    batchSize: 10
    steps: 50000
    checkpoint: {everySteps: 4000}
)";

// Returns what the seconds of the finished job in `directory` were spent on, which add up to the
// time that its runs took.
TimeSpent time_of(const std::filesystem::path& directory) {
  const Json summary = Json::parse(read_text(directory / "summary.json"));
  const TimeSpent spent = TimeSpent::of(summary["goodput"]["seconds"]);
  const double wall = summary["wallSeconds"].get<double>();
  // The directory is made before the job begins, and the summary is written after its end.
  EXPECT_NEAR(spent.total(), wall, std::max(0.25, 0.01 * wall)) << summary.dump(2);
  EXPECT_LT(spent[TimeUse::unknown], 0.1) << summary.dump(2);
  return spent;
}

TEST(Ledger, OfAJobAddsUpToItsTime) {
  ScriptJob job(manifest({{"chief", "{replicas: 1}"}}, kLine));
  auto run = job.run();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  const TimeSpent spent = time_of(job.directory());
  EXPECT_GT(spent[TimeUse::computing], 0);
  EXPECT_EQ(spent[TimeUse::recomputing], 0);
  EXPECT_EQ(spent[TimeUse::lost], 0);
}

TEST(Ledger, OfAJobThatWasKilledAndInterruptedAddsUpToTheTimeOfItsRuns) {
  ScriptJob job(manifest({{"ps", "{replicas: 1}"}, {"chief", "{replicas: 1}"}}, kLine));
  {
    auto run = job.run();
    await_file(job.directory() / "checkpoints" / "checkpoint");
    ::kill(job.pid_of("run", "chief-0"), SIGKILL);
    run->await_output("chief-0 ended");
    while (TimeSpent::of(job.state()["status"]["goodput"]["seconds"])[TimeUse::lost] == 0) {
      ASSERT_FALSE(run->has_ended()) << (run->wait(), run->output());
      ::poll(nullptr, 0, 20);
    }
    run->signal(SIGINT);
    EXPECT_EQ(run->wait(), 128 + SIGINT) << run->output();
  }
  auto run = job.run();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  const TimeSpent spent = time_of(job.directory());
  EXPECT_GT(spent[TimeUse::computing], 0);
  EXPECT_GT(spent[TimeUse::communication], 0);
  EXPECT_GT(spent[TimeUse::lost], 0);
}

// Has the storage below `folder` behave as `faults` says. Returns the file that says it.
std::filesystem::path set_faults(ScriptJob& job, const std::filesystem::path& folder,
                                 const std::string& faults) {
  const std::filesystem::path file = job.folder() / "faults";
  write_file_atomically(file, faults);
  job.set("LD_PRELOAD", MUSTER_STORAGE_FAULTS);
  job.set("MUSTER_FAULTS", file.string());
  job.set("MUSTER_FAULTS_BELOW", folder.string());
  job.set("ASAN_OPTIONS", "verify_asan_link_order=0");
  return file;
}

// Each picture is read at each use, from storage that takes 20 ms to open it and to read it.
TEST(Ledger, OfAJobThatIsStarvedOfInputSaysSo) {
  ScriptJob job(manifest({{"chief", "{replicas: 1}"}}, R"(  training:
    model: {layers: [globalAveragePool: {}, dense: {units: 2}]}
    data: {train: {imageFolder: {path: pictures, imageSize: [8, 8]}, cache: false}}
    batchSize: 2
    steps: 30
)"));
  const std::filesystem::path pictures = job.folder() / "pictures";
  for (const char* kind : {"blue", "red"}) {
    std::filesystem::create_directories(pictures / kind);
    std::filesystem::copy_file(MUSTER_SOURCE_DIR "/tests/fixtures/images/rgb.png",
                               pictures / kind / "1.png");
  }
  set_faults(job, "pictures", "slow 20");  // the trainer opens them by the manifest's words
  auto run = job.run();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  const TimeSpent spent = time_of(job.directory());
  EXPECT_GT(spent[TimeUse::input], 0.1);  // all of it on 24 processors that read at once
  EXPECT_GT(spent[TimeUse::input], spent[TimeUse::computing]);
  EXPECT_EQ(spent[TimeUse::storage], 0);
}

TEST(Ledger, OfAJobWhoseStorageIsFullSaysSo) {
  ScriptJob job(manifest({{"chief", "{replicas: 1}"}}, R"(  training:
    model: {name: linear-regression}
    data: {train: {syntheticLinear: {samples: 1000}}}
    batchSize: 10
    steps: 100
)"));
  const auto faults = set_faults(job, job.directory() / "checkpoints", "full manifest");
  auto run = job.run();
  run->await_output("waiting for the storage: cannot write ");
  std::this_thread::sleep_for(std::chrono::seconds(2));  // which are to be found in the ledger
  EXPECT_FALSE(run->has_ended()) << run->output();
  write_file_atomically(faults, "");
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  const TimeSpent spent = time_of(job.directory());
  EXPECT_GT(spent[TimeUse::storage], 1);
  EXPECT_EQ(spent[TimeUse::lost], 0);
}

TEST(Ledger, OfAProgramOfOnesOwnIsWhatItsReplicasShow) {
  ScriptJob job(manifest({{"chief", script("sleep 1")}}));
  auto run = job.run();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_GE(time_of(job.directory())[TimeUse::computing], 0.9);
}

}  // namespace
}  // namespace muster::test
