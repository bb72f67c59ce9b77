#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "common/exit_code.h"
#include "common/system/file.h"
#include "tests/integration/muster_run/harness.h"

// `muster run --hosts` where a script takes ssh's place, so that "hosts" are this machine. With
// sshd and a network: tests/e2e/test_hosts.py.

namespace muster::test {
namespace {

using testing::HasSubstr;

// A host of which lost-<destination> exists is not reached.
constexpr const char* kSsh = R"(#!/bin/sh
for word; do host=$last; last=$word; done
[ -e "$(dirname "$0")/lost-$host" ] && { echo "no way to $host" >&2; exit 255; }
case $last in *survey) printf 'hello from a shell ';; esac
exec sh -c "$last"
)";

constexpr const char* kNoRestart = "  runPolicy: {backoffLimit: 0}\n";

class OnHosts : public testing::Test {
 protected:
  // With two hosts, a and b, of so many slots.
  std::unique_ptr<ScriptJob> job(const std::vector<std::pair<std::string, std::string>>& roles,
                                 int slots = 4, const std::string& spec = "") {
    auto job = std::make_unique<ScriptJob>(manifest(roles, spec));
    const std::filesystem::path ssh = job->folder() / "ssh";
    write_file_atomically(ssh, kSsh);
    std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
    const std::string each = ", slots: " + std::to_string(slots) + "}";
    write_file_atomically(job->folder() / "hosts.yaml",
                          "hosts: [{name: a, address: 127.0.0.2" + each +
                              ", {name: b, address: 127.0.0.3" + each +
                              "]\nssh: [./ssh]\nmuster: " MUSTER_BINARY_DIR "/bin/muster\n");
    return job;
  }
  static std::unique_ptr<Muster> run(ScriptJob& job) {
    return job.muster({"run", "job.yaml", "--hosts", "hosts.yaml", "--directory", "run"});
  }
  static void lose(ScriptJob& job, const std::string& host) {
    std::ofstream(job.folder() / ("lost-" + host)) << "";
  }
};

TEST_F(OnHosts, replicas_know_where_they_and_the_others_are) {
  const auto job = this->job(
      {{"chief",
        script("echo $MUSTER_POD_IP; echo $TF_CONFIG; echo $MUSTER_HTTP_ADDRESS; read go < "
               "$GATE")},
       {"worker",
        script("echo $MUSTER_POD_IP; echo hello >&2; echo up > $EVENTS; read go < $GATE")}});
  const auto run = this->run(*job);
  EXPECT_EQ(job->next_event(), "up");
  job->open_gate();
  job->open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  const std::string chief = job->log("chief-0");
  EXPECT_THAT(chief, HasSubstr("\n127.0.0.2\n"));
  EXPECT_THAT(chief, HasSubstr(R"({"cluster":{"chief":["127.0.0.2:)"));
  EXPECT_THAT(chief, HasSubstr(R"("worker":["127.0.0.3:)"));
  EXPECT_THAT(chief, HasSubstr("\n127.0.0.2:"));
  EXPECT_THAT(job->log("worker-0"), HasSubstr("\n127.0.0.3\nhello\n"));
}

TEST_F(OnHosts, exit_codes_are_the_replicas_own) {
  const auto job = this->job({{"chief", script("exit 65")}}, 4, kNoRestart);
  const auto run = this->run(*job);
  EXPECT_EQ(run->wait(), 65) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("65"));
}

TEST_F(OnHosts, a_command_that_is_not_there_is_said) {
  const auto job = this->job(
      {{"chief",
        "{template: {spec: {containers: [{name: c, image: i, command: [/no/program]}]}}}"}},
      4, kNoRestart);
  const auto run = this->run(*job);
  EXPECT_NE(run->wait(), kSuccess);
  EXPECT_THAT(run->output(), HasSubstr("chief-0 ended with exit code 127"));
  EXPECT_THAT(job->log("chief-0"), HasSubstr("cannot run /no/program"));
}

TEST_F(OnHosts, who_is_asked_to_leave_may_finish) {
  const auto job =
      this->job({{"chief", script("trap 'echo saved; exit 143' TERM; echo up > $EVENTS; "
                                  "while :; do sleep 0.1; done")}});
  const auto run = this->run(*job);
  EXPECT_EQ(job->next_event(), "up");
  run->signal(SIGTERM);
  EXPECT_EQ(run->wait(), 143) << run->output();
  EXPECT_THAT(job->log("chief-0"), HasSubstr("saved"));
}

TEST_F(OnHosts, a_replica_ends_with_the_process_that_stands_for_it) {
  const auto job =
      this->job({{"chief", script("echo $$$$ > $EVENTS; while :; do sleep 0.1; done")}});
  const auto run = this->run(*job);
  const pid_t pid = std::stoi(job->next_event());
  run->signal(SIGKILL);
  await_end_of(pid);
}

TEST_F(OnHosts, a_replica_moves_from_a_host_that_is_lost) {
  // With `training`, so that nobody waits until what is on the lost host must have ended.
  const auto job = this->job(
      {{"chief", script("echo $MUSTER_POD_IP > $EVENTS; read go < $GATE; [ $MUSTER_POD_IP "
                        "= 127.0.0.3 ]")}},
      4,
      "  training: {model: {name: linear-regression}, data: {train: {syntheticLinear: "
      "{samples: 1000}}}, epochs: 1}\n  runPolicy: {backoffLimit: 3}\n");
  const auto run = this->run(*job);
  EXPECT_EQ(job->next_event(), "127.0.0.2");
  lose(*job, "a");
  job->open_gate();
  EXPECT_EQ(job->next_event(), "127.0.0.3");
  job->open_gate();
  run->wait();
  EXPECT_THAT(run->output(), HasSubstr("chief-0: lost on the host a: ssh has ended with 255: no "
                                       "way to a"));
  EXPECT_THAT(run->output(), HasSubstr("chief-0 moves from a to b"));
}

TEST_F(OnHosts, a_job_is_not_scaled_beyond_its_slots) {
  const auto job = this->job({{"chief", script("echo up > $EVENTS; read go < $GATE")},
                              {"worker", script("while :; do sleep 0.1; done")}},
                             /*slots=*/1);
  const auto run = this->run(*job);
  EXPECT_EQ(job->next_event(), "up");
  const auto scale = job->muster({"scale", "run", "--replicas", "2"});
  run->await_output(
      "warning: not scaled: --hosts: expected 3 slots for the job's replicas, found 2");
  job->open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
}

TEST_F(OnHosts, hosts_that_are_not_reached_are_left_out) {
  const auto job = this->job({{"chief", script("echo $MUSTER_POD_IP > $EVENTS")}});
  lose(*job, "a");
  const auto run = this->run(*job);
  EXPECT_EQ(job->next_event(), "127.0.0.3");
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("note: the host a is not used: ssh or `muster host survey` "
                                       "has ended with 255: no way to a"));
  lose(*job, "b");
  const auto again =
      job->muster({"run", "job.yaml", "--hosts", "hosts.yaml", "--directory", "another"});
  EXPECT_EQ(again->wait(), kUnavailable) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("expected a host that can be used, found none"));
}

TEST_F(OnHosts, what_hosts_have_already_is_not_copied) {
  const auto job = this->job({{"chief", script("cat data/file; exit 0")}});
  std::filesystem::create_directory(job->folder() / "data");
  std::ofstream(job->folder() / "hosts.yaml", std::ios::app) << "copy: [data]\n";
  std::ofstream(job->folder() / "data/file") << "content\n";
  const auto run = this->run(*job);
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(job->log("chief-0"), HasSubstr("\ncontent\n"));
  EXPECT_THAT(run->output(), testing::Not(HasSubstr("copied")));
  EXPECT_FALSE(is_there(job->folder() / ".data.muster-copy"));
}

TEST_F(OnHosts, what_is_to_be_copied_and_is_not_there_is_said_before_anything_is_made) {
  const auto job = this->job({{"chief", script("exit 0")}});
  std::ofstream(job->folder() / "hosts.yaml", std::ios::app) << "copy: [data]\n";
  const auto run = this->run(*job);
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(), HasSubstr("hosts.yaml:4: copy[0]: expected a file or folder, found "
                                       "none at " +
                                       (job->folder() / "data").string()));
  EXPECT_FALSE(is_there(job->directory()));
}

TEST_F(OnHosts, too_few_slots_are_said_before_anything_starts) {
  const auto job = this->job(
      {{"chief", script("exit 0")}, {"worker", script("exit 0", "replicas: 2")}}, /*slots=*/1);
  const auto run = this->run(*job);
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(), HasSubstr("expected 3 slots for the job's replicas, found 2"));
}

}  // namespace
}  // namespace muster::test
