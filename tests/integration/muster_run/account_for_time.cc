#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "common/exit_code.h"
#include "common/job/time_use.h"
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

TEST(Ledger, OfAProgramOfOnesOwnIsWhatItsReplicasShow) {
  ScriptJob job(manifest({{"chief", script("sleep 1")}}));
  auto run = job.run();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_GE(time_of(job.directory())[TimeUse::computing], 0.9);
}

}  // namespace
}  // namespace muster::test
