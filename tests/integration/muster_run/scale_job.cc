#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "common/exit_code.h"
#include "common/json.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Tells its name and attempt, and goes on until the gate opens; asked to leave it says so and ends
// with an error of its own.
constexpr const char* kMember =
    "trap 'echo $MUSTER_ROLE-$MUSTER_INDEX left > $EVENTS; exit 65' TERM; "
    "echo $MUSTER_ROLE-$MUSTER_INDEX $MUSTER_ATTEMPT > $EVENTS; while :; do sleep 0.1; done";
constexpr const char* kChief =
    "echo $MUSTER_ELASTIC > $EVENTS; echo $TF_CONFIG > $EVENTS; read go < $GATE";
constexpr const char* kElastic = R"(  strategy: collective
  training: {model: {name: linear-regression}, data: {train: {syntheticLinear: {samples: 1000}}}, epochs: 1}
  elastic: {minReplicas: 1, maxReplicas: 3}
)";

std::unique_ptr<ScriptJob> elastic_job() {
  auto job = std::make_unique<ScriptJob>(
      manifest({{"chief", script(kChief)}, {"worker", script(kMember)}}, kElastic));
  job->set("MUSTER_TRAINER", "/bin/true");
  return job;
}

struct Ended {
  int code;
  std::string output;
};

Ended scale(ScriptJob& job, const std::string& replicas, const std::string& directory = "run") {
  auto scaled = job.muster({"scale", directory, "--replicas", replicas});
  const int code = scaled->wait();
  return {code, scaled->output()};
}

std::vector<std::string> replicas_shown(ScriptJob& job) {
  auto status = job.muster({"status", "run", "-o", "json"});
  EXPECT_EQ(status->wait(), kSuccess) << status->output();
  std::vector<std::string> names;
  const Json shown = Json::parse(status->output());
  for (const Json& replica : shown["replicas"]) {
    names.push_back(replica["name"]);
  }
  return names;
}

TEST(MusterScale, changes_the_workers_of_a_job_that_runs_and_leaves_the_others_alone) {
  const auto job = elastic_job();
  auto run = job->run();
  const std::vector<std::string> begun = job->next_events(3);
  EXPECT_THAT(begun, ElementsAre("worker-0 0", HasSubstr("\"worker\":[\"127.0.0.1:"),
                                 R"({"minReplicas":1,"maxReplicas":3,"batch":"global"})"));
  EXPECT_THAT(scale(*job, "3").output, HasSubstr("run: scaled to 3 workers\n"));
  EXPECT_THAT(job->next_events(2), ElementsAre("worker-1 0", "worker-2 0"));
  EXPECT_THAT(scale(*job, "1").output, HasSubstr("run: scaled to 1 worker\n"));
  EXPECT_THAT(job->next_events(2), ElementsAre("worker-1 left", "worker-2 left"));
  EXPECT_THAT(scale(*job, "1").output, HasSubstr("unchanged: it has 1 worker already"));
  EXPECT_THAT(scale(*job, "2").output, HasSubstr("run: scaled to 2 workers\n"));
  EXPECT_EQ(job->next_event(), "worker-1 1");
  EXPECT_THAT(replicas_shown(*job), ElementsAre("chief-0", "worker-0", "worker-1"));
  EXPECT_EQ(job->state()["status"]["restarts"], 0);
  job->open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("scaled to 3 workers"));
  const auto late = scale(*job, "1");
  EXPECT_EQ(late.code, kBadInput);
  EXPECT_THAT(late.output, HasSubstr("expected one that trains, found one that is Succeeded"));
}

TEST(MusterScale, of_an_interrupted_run_ends_with_it_and_the_manifest_counts_again) {
  const auto job = elastic_job();
  auto run = job->run();
  job->next_events(3);
  scale(*job, "2");
  job->next_event();
  run->signal(SIGKILL);
  EXPECT_EQ(run->wait(), 137);
  const auto stopped = scale(*job, "3");
  EXPECT_EQ(stopped.code, kBadInput);
  EXPECT_THAT(stopped.output, HasSubstr("no `muster run` runs it"));
  auto again = job->run();
  EXPECT_EQ(job->next_events(3)[0], "worker-0 1");
  EXPECT_FALSE(job->state().contains("workers"));
  job->open_gate();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
}

TEST(MusterScale, says_what_cannot_be_scaled) {
  const auto job = elastic_job();
  auto run = job->run();
  job->next_events(3);
  for (const char* replicas : {"0", "4"}) {
    const auto refused = scale(*job, replicas);
    EXPECT_EQ(refused.code, kBadInput);
    EXPECT_THAT(refused.output, HasSubstr("--replicas: expected from 1 to 3, minReplicas and "
                                          "maxReplicas of job script's spec.elastic"));
  }
  job->open_gate();
  EXPECT_EQ(run->wait(), kSuccess);

  ScriptJob fixed(manifest({{"chief", script("echo on > $EVENTS; read go < $GATE")}}));
  auto other = fixed.run();
  fixed.next_event();
  const auto refused = scale(fixed, "2");
  EXPECT_EQ(refused.code, kBadInput);
  EXPECT_THAT(refused.output, HasSubstr("job script: expected spec.elastic"));
  fixed.open_gate();
  EXPECT_EQ(other->wait(), kSuccess);
  EXPECT_THAT(scale(fixed, "-1").output, HasSubstr("--replicas"));
  const auto nowhere = scale(fixed, "2", "./nothing");
  EXPECT_EQ(nowhere.code, kBadInput);
  EXPECT_THAT(nowhere.output, HasSubstr("expected a job's directory"));
}

}  // namespace
}  // namespace muster::test
