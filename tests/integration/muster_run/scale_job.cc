#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>

#include "common/documents/json.h"
#include "common/exit_code.h"
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

constexpr const char* kOwnChief =
    "echo chief-0 $MUSTER_ATTEMPT $MUSTER_REPLICAS > $EVENTS; read go < $GATE";

TEST(MusterScale, of_ones_own_programs_restarts_the_group_with_one_tf_config) {
  ScriptJob job(manifest({{"chief", script(kOwnChief)}, {"worker", script(kMember)}},
                         "  runPolicy: {backoffLimit: 0}\n"));
  auto run = job.run();
  EXPECT_THAT(job.next_events(2), ElementsAre(R"(chief-0 0 {"chief":1,"worker":1})", "worker-0 0"));
  EXPECT_THAT(scale(job, "2").output,
              HasSubstr("run: scaled to 2 workers; all replicas restart, to have the same "));
  EXPECT_THAT(job.next_events(4), ElementsAre(R"(chief-0 1 {"chief":1,"worker":2})", "worker-0 1",
                                              "worker-0 left", "worker-1 0"));
  EXPECT_THAT(scale(job, "1").output, HasSubstr("scaled to 1 worker; all replicas restart"));
  EXPECT_THAT(job.next_events(4), ElementsAre(R"(chief-0 2 {"chief":1,"worker":1})", "worker-0 2",
                                              "worker-0 left", "worker-1 left"));
  EXPECT_EQ(job.state()["status"]["restarts"], 0);
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("the job is scaled (worker from 1 to 2); all replicas "));
}

TEST(MusterScale, leaves_programs_alone_that_take_workers_that_come_and_go) {
  ScriptJob job(manifest({{"chief", script(kOwnChief)}, {"worker", script(kMember)}},
                         "  enableDynamicWorker: true\n"));
  auto run = job.run();
  job.next_events(2);
  EXPECT_THAT(scale(job, "3").output, HasSubstr("run: scaled to 3 workers\n"));
  EXPECT_THAT(job.next_events(2), ElementsAre("worker-1 0", "worker-2 0"));
  EXPECT_THAT(scale(job, "2").output, HasSubstr("run: scaled to 2 workers\n"));
  EXPECT_EQ(job.next_event(), "worker-2 left");
  EXPECT_EQ(job.state()["status"]["restarts"], 0);
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("(worker from 1 to 3); nobody is restarted"));
}

// On a cluster the API server would refuse these changes.
TEST(MusterScale, refuses_what_makes_the_manifest_invalid) {
  ScriptJob job(manifest({{"worker", script("echo on > $EVENTS; read go < $GATE")}}));
  auto run = job.run();
  job.next_event();
  const auto nobody = scale(job, "0");
  EXPECT_EQ(nobody.code, kBadInput);
  EXPECT_THAT(nobody.output, HasSubstr("at least one replica that trains"));
  const auto many = scale(job, "1001");
  EXPECT_EQ(many.code, kBadInput);
  EXPECT_THAT(many.output, HasSubstr("spec.replicaSpecs.worker.replicas: expected"));
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess);
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
  EXPECT_THAT(refused.output,
              HasSubstr("job script: expected spec.replicaSpecs.worker, found none"));
  fixed.open_gate();
  EXPECT_EQ(other->wait(), kSuccess);
  EXPECT_THAT(scale(fixed, "-1").output, HasSubstr("--replicas"));
  const auto nowhere = scale(fixed, "2", "./nothing");
  EXPECT_EQ(nowhere.code, kBadInput);
  EXPECT_THAT(nowhere.output, HasSubstr("expected a job's directory"));
}

}  // namespace
}  // namespace muster::test
