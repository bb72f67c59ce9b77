#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct Ended {
  int code;
  std::string output;
};

Ended ask(ScriptJob& job, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"checkpoint", "run"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  auto asked = job.muster(arguments);
  const int code = asked->wait();
  return {code, asked->output()};
}

// It trains for as long as the test lets it, and takes no checkpoints by itself.
constexpr const char* kTraining = R"(  training:
    model: {name: linear-regression}
    data: {train: {syntheticLinear: {samples: 10000}}}
    epochs: 1000000
    checkpoint: {everySeconds: null}
)";

std::string training_job(bool collective) {
  const std::string roles =
      collective ? "  strategy: collective\n  replicaSpecs: {chief: {}, worker: {}}\n"
                 : "  replicaSpecs: {ps: {}, chief: {}, worker: {}}\n";
  return "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: asked}\nspec:\n" +
         roles + kTraining;
}

class RequestedCheckpoint : public testing::TestWithParam<bool> {};

TEST_P(RequestedCheckpoint, is_taken_while_the_job_trains_on) {
  ScriptJob job(training_job(GetParam()));
  auto run = job.run();
  run->await_output("step ");
  const Ended first = ask(job);
  EXPECT_EQ(first.code, kSuccess) << first.output;
  EXPECT_THAT(
      first.output,
      ContainsRegex("^run: checkpoint of step [0-9]+ in run/checkpoints/ckpt-[0-9]+-g1\n$"));
  const std::string folder = first.output.substr(first.output.find(" in ") + 4);
  EXPECT_TRUE(std::filesystem::exists(job.folder() / folder.substr(0, folder.size() - 1) /
                                      "manifest.json"));
  const Ended second = ask(job, {"--timeout", "60"});
  EXPECT_EQ(second.code, kSuccess) << second.output;
  EXPECT_NE(second.output, first.output);
  EXPECT_EQ(ask(job, {"--no-wait"}).output, "run: asked for a checkpoint\n");
  run->signal(SIGTERM);
  EXPECT_EQ(run->wait(), 143) << run->output();
  EXPECT_THAT(run->output(), HasSubstr(" was taken as asked for (\"muster checkpoint, "));
  const Ended late = ask(job);
  EXPECT_EQ(late.code, kBadInput);
  EXPECT_THAT(late.output, HasSubstr("run: expected a job that runs, found that no `muster run`"));
}

INSTANTIATE_TEST_SUITE_P(Strategies, RequestedCheckpoint, testing::Bool(),
                         [](const auto& collective) -> std::string {
                           return collective.param ? "collective" : "parameter_servers";
                         });

constexpr const char* kChief = "echo on > $EVENTS; read go < $GATE";

TEST(MusterCheckpoint, says_which_jobs_take_none) {
  ScriptJob job(manifest({{"chief", script(kChief)}}));
  auto run = job.run();
  job.next_event();
  const Ended refused = ask(job);
  EXPECT_EQ(refused.code, kBadInput);
  EXPECT_THAT(refused.output, HasSubstr("job script: expected one with spec.training, found one"));
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess);
}

// The script never takes one.
TEST(MusterCheckpoint, that_nobody_takes_is_told_when_time_is_up_or_the_job_ends) {
  ScriptJob job(manifest({{"chief", script(kChief)}}, kTraining));
  job.set("MUSTER_TRAINER", "/bin/true");
  auto run = job.run();
  job.next_event();
  const Ended late = ask(job, {"--timeout", "1"});
  EXPECT_EQ(late.code, kUnavailable);
  EXPECT_THAT(late.output, HasSubstr("run: expected the checkpoint to be published within 1 s"));
  std::filesystem::remove(job.directory() / "checkpoint-request");
  auto waiting = job.muster({"checkpoint", "run"});
  await_file(job.directory() / "checkpoint-request");
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_EQ(waiting->wait(), kBadInput);
  EXPECT_THAT(waiting->output(),
              HasSubstr("until the checkpoint is published, found it Succeeded"));
  const Ended after = ask(job);
  EXPECT_EQ(after.code, kBadInput);
  EXPECT_THAT(after.output, HasSubstr("expected one that trains, found one that is Succeeded"));
}

}  // namespace
}  // namespace muster::test
