#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <fstream>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// In muster-trainer's place: as many steps as it has been asked for its progress.
constexpr const char* kCountingTrainer = R"(#!/usr/bin/env python3
import http.server
import os

asked = 0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += self.path == "/progress"
        body = b'{"step": %d, "totalSteps": 1000}' % asked
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


host, port = os.environ["MUSTER_HTTP_ADDRESS"].split(":")
http.server.HTTPServer((host, int(port)), Handler).serve_forever()
)";

constexpr const char* kOneChief = R"(apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: line}
spec:
  training:
    model: {name: linear-regression}
    data: {train: {syntheticLinear: {samples: 1000}}}
    epochs: 1
  replicaSpecs: {chief: {}}
)";

// Its step is how often the trainer has been asked: what is written gets as far while it runs.
TEST(MusterStatus, hears_of_progress_while_the_job_runs) {
  constexpr int64_t kAnswers = 8;
  ScriptJob job(kOneChief);
  std::ofstream(job.folder() / "trainer") << kCountingTrainer;
  fs::permissions(job.folder() / "trainer", fs::perms::owner_all);
  job.set("MUSTER_TRAINER", job.folder() / "trainer");
  auto run = job.run();
  await_file(job.directory() / "job.json");
  for (int64_t written = 0; written < kAnswers;) {
    ASSERT_FALSE(run->has_ended()) << (run->wait(), run->output());
    const Json state = job.state();
    written = integer_or(member(member(state, "status"), "progress"), "step", 0);
    ::poll(nullptr, 0, 20);
  }
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), 130) << run->output();
}

TEST(MusterLogs, refuse_a_name_that_no_replica_has_and_list_those_there_are) {
  ScriptJob job(manifest({{"chief", script("echo from chief")}, {"ps", script("sleep 60")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  const std::vector<std::string> cases[] = {
      {"nosuch"}, {"chief", "nosuch"}, {"nosuch", "--follow"}};
  for (std::vector<std::string> arguments : cases) {
    arguments.insert(arguments.begin(), {"logs", "run"});
    auto logs = job.muster(arguments);
    EXPECT_EQ(logs->wait(), kBadInput);
    EXPECT_THAT(
        logs->output(),
        AllOf(HasSubstr("expected one of: chief-0, muster, ps-0; or one of their roles; found "
                        "\"nosuch\""),
              Not(HasSubstr("from chief"))));
  }
  auto muster = job.muster({"logs", "run", "muster"});
  EXPECT_EQ(muster->wait(), kSuccess);
  EXPECT_THAT(muster->output(), HasSubstr("chief-0 succeeded"));
}

TEST(MusterLogs, are_json_for_programs) {
  ScriptJob job(manifest({{"chief", script("echo '{\"level\":\"info\",\"step\":3}'; echo done")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  auto logs = job.muster({"logs", "run", "chief", "--tail", "2", "-o", "json"});
  EXPECT_EQ(logs->wait(), kSuccess);
  std::istringstream lines(logs->output());
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::parse(line));
  ASSERT_EQ(read.size(), 2u) << logs->output();
  EXPECT_EQ(read[0], Json::parse(R"({"replica": "chief-0", "level": "info", "step": 3})"));
  EXPECT_EQ(read[1]["message"], "done");
  EXPECT_EQ(read[1]["time"].get<std::string>().size(), 20u) << "when its attempt began";
  auto text = job.muster({"logs", "run", "chief", "--tail", "1"});
  EXPECT_EQ(text->wait(), kSuccess);
  EXPECT_EQ(text->output(), "chief-0 | done\n");
}

TEST(MusterLogs, of_a_running_job_wait_for_a_replica_that_has_none_yet) {
  ScriptJob job(manifest({{"chief", script("read go < $GATE")}}));
  auto run = job.run();
  await_file(job.directory() / "logs" / "chief-0.log");
  fs::remove(job.directory() / "logs" / "chief-0.log");
  auto logs = job.muster({"logs", "run", "chief"});
  EXPECT_EQ(logs->wait(), kSuccess) << logs->output();
  EXPECT_THAT(logs->output(), IsEmpty());
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
}

TEST(MusterSummary, of_a_failed_job_says_why_in_json_too) {
  ScriptJob job(manifest({{"chief", script("echo out of luck; exit 3")}},
                         "  failurePolicy: {rules: [{onExitCodes: [3], action: FailJob}]}\n"));
  EXPECT_EQ(job.run()->wait(), 3);
  const Json failure = Json::parse(read_text(job.directory() / "summary.json"))["failure"];
  EXPECT_EQ(failure["reason"], "FailureRule");
  EXPECT_EQ(failure["message"], "chief-0 ended with exit code 3 (failed): \"out of luck\"");
  EXPECT_EQ(failure["replica"], "chief-0");
  EXPECT_EQ(failure["exitCode"], 3);
  EXPECT_EQ(failure["log"], "logs/chief-0.log");
}

TEST(MusterSummary, shows_the_parameters_of_a_model_of_a_few) {
  ScriptJob job("");
  auto run = job.muster({"run", MUSTER_SOURCE_DIR "/examples/linear-regression.yaml", "--directory",
                         "run", "--set", "spec.training.epochs=1"});
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("\n  parameters           linear/bias "));
  const Json found = Json::parse(read_text(job.directory() / "summary.json"))["parameters"];
  EXPECT_NEAR(found["linear/bias"][0].get<double>(), 10, 0.1);
  EXPECT_NEAR(found["linear/kernel"][0].get<double>(), 2, 0.1);
}

TEST(MusterSummary, of_a_job_that_succeeded_has_no_failure) {
  ScriptJob job(manifest({{"chief", script("exit 0")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_TRUE(summary.contains("failure"));
  EXPECT_TRUE(summary["failure"].is_null());
}

}  // namespace
}  // namespace muster::test
