#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "common/exit_code.h"
#include "operator/local/processes/ports.h"
#include "operator/local/processes/process_table.h"
#include "tests/integration/muster_run/harness.h"

namespace muster::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Tells its name, attempt and process ($$$$ is $$ after Kubernetes' expansion); the shell itself
// stays,
const std::string kHello = "echo $MUSTER_ROLE-$MUSTER_INDEX $MUSTER_ATTEMPT $$$$ > $EVENTS; ";
// Short sleeps: a shell that is signalled between its fork and the child's exec waits for the
// child.
const std::string kForEver = "while :; do sleep 0.1; done";
// Says so when it is asked to leave.
const std::string kLeavesWithWord =
    "trap 'echo $MUSTER_ROLE left > $EVENTS; exit 143' TERM; " + kHello + kForEver;

pid_t pid_in(const std::string& hello) {
  return std::stoi(hello.substr(hello.rfind(' ') + 1));
}

const Json& record(const Json& state, const std::string& role) {
  for (const Json& one : state["status"]["records"]) {
    if (one["role"] == role) return one;
  }
  throw std::runtime_error("no record of " + role + " in " + state.dump(2));
}

TEST(MusterRun, ends_with_success_when_the_chief_does_and_stops_the_others) {
  ScriptJob job(manifest({{"ps", script(kHello + kForEver)},
                          {"chief", script(kHello + "read go < $GATE")},
                          {"worker", script(kHello + kForEver, "replicas: 2")}}));
  auto run = job.run();
  const auto hellos = job.next_events(4);
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("script: Succeeded"));
  for (const std::string& hello : hellos) EXPECT_NE(::kill(pid_in(hello), 0), 0) << hello;
  const Json summary = Json::parse(read_text(job.directory() / "summary.json"));
  EXPECT_EQ(summary["state"], "Succeeded");
  EXPECT_TRUE(summary["weightsDigest"].is_null());
}

TEST(MusterRun, leaves_a_finished_job_finished) {
  ScriptJob job(manifest({{"chief", script(kHello + "exit 0")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  job.next_event();
  const std::string log = job.log("chief-0");
  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess);
  EXPECT_THAT(again->output(), HasSubstr("had finished already"));
  EXPECT_EQ(job.log("chief-0"), log);
}

TEST(MusterRun, refuses_a_changed_manifest_on_a_finished_job_and_says_what_differs) {
  ScriptJob job(manifest({{"chief", script("exit 0")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  auto again = job.muster(
      {"run", "job.yaml", "--directory", "run", "--set", "spec.runPolicy.backoffLimit=2"});
  EXPECT_EQ(again->wait(), kBadInput);
  EXPECT_THAT(again->output(), HasSubstr("spec.runPolicy.backoffLimit (was 6, is 2)"));
  EXPECT_EQ(job.run()->wait(), kSuccess);
}

TEST(MusterRun, restarts_a_replica_that_was_killed_and_counts_it_once) {
  ScriptJob job(manifest(
      {{"chief", script(kHello + "read go < $GATE")}, {"worker", script(kHello + kForEver)}}));
  auto run = job.run();
  const auto hellos = job.next_events(2);
  ASSERT_THAT(hellos[1], StartsWith("worker-0 0 "));
  ::kill(pid_in(hellos[1]), SIGKILL);
  EXPECT_THAT(job.next_event(), StartsWith("worker-0 1 "));
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess);
  EXPECT_THAT(run->output(), HasSubstr("137 (terminated (SIGKILL))"));
  EXPECT_EQ(record(job.state(), "worker")["restarts"], 1);
  EXPECT_EQ(job.state()["status"]["restarts"], 1);
  EXPECT_THAT(job.log("worker-0"), HasSubstr("worker-0 attempt 1"));
}

struct Ending {
  const char* name;
  std::string text;     // of the chief's script
  std::string replica;  // more of its spec
  std::string spec;     // more of the job's
  int exit_code;
  const char* says;
};
class FailingChief : public testing::TestWithParam<Ending> {};

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST_P(FailingChief, decides_how_the_run_ends) {
  const Ending& ending = GetParam();
  ScriptJob job(manifest(
      {{"chief", script(ending.text, ending.replica)}, {"worker", script(kForEver)}}, ending.spec));
  auto run = job.run();
  EXPECT_EQ(run->wait(), ending.exit_code) << run->output();
  EXPECT_EQ(count(run->output(), ending.says), 1) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("The end of run/logs/chief-0.log"));
  EXPECT_EQ(Json::parse(read_text(job.directory() / "summary.json"))["state"], "Failed");
  auto again = job.run();
  EXPECT_EQ(again->wait(), ending.exit_code);
  for (const auto* one : {run.get(), again.get()}) {
    EXPECT_THAT(one->output(), HasSubstr("muster run job.yaml --directory run --retry"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    ExitCodes, FailingChief,
    testing::Values(
        Ending{"by_rule", "echo bad luck; exit 2", "",
               "  failurePolicy: {rules: [{onExitCodes: [2], action: FailJob}]}\n", 2, "bad luck"},
        Ending{"never_restarted", "exit 3", "restartPolicy: Never", "", 3, "RestartPolicyNever"},
        Ending{"limit_used_up", "exit 4", "", "  runPolicy: {backoffLimit: 0}\n", 4,
               "BackoffLimitExceeded"},
        Ending{"by_signal", "kill -SEGV $$$$", "restartPolicy: Never", "", kInternal,
               "terminated (SIGSEGV)"}),
    [](const auto& info) { return info.param.name; });

TEST(MusterRun, retries_a_failed_job_when_asked_to_and_counts_attempts_on) {
  ScriptJob job(
      manifest({{"chief", script(kHello + "[ $MUSTER_ATTEMPT = 2 ]", "restartPolicy: Never")}}));
  EXPECT_EQ(job.run()->wait(), 1);
  auto refused = job.run();
  EXPECT_EQ(refused->wait(), 1);
  EXPECT_THAT(refused->output(), HasSubstr("It had failed already"));
  EXPECT_EQ(job.muster({"run", "job.yaml", "--directory", "run", "--retry"})->wait(), 1);
  auto retried = job.muster({"run", "job.yaml", "--directory", "run", "--retry"});
  EXPECT_EQ(retried->wait(), kSuccess) << retried->output();
  EXPECT_THAT(retried->output(), HasSubstr("script: retries in run"));
  for (const int attempt : {0, 1, 2}) {
    EXPECT_THAT(job.next_event(), StartsWith("chief-0 " + std::to_string(attempt) + " "));
  }
  EXPECT_EQ(job.muster({"run", "job.yaml", "--directory", "run", "--retry"})->wait(), kSuccess)
      << "a job that has finished stays finished";
}

TEST(MusterRun, says_that_its_deadline_has_passed_by_a_code_of_its_own) {
  ScriptJob job(
      manifest({{"chief", script(kForEver)}}, "  runPolicy: {activeDeadlineSeconds: 1}\n"));
  auto run = job.run();
  EXPECT_EQ(run->wait(), kDeadline) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("DeadlineExceeded"));
  EXPECT_EQ(job.run()->wait(), kDeadline);
}

TEST(MusterRun, stops_members_before_ps_on_interrupt_and_resumes) {
  ScriptJob job(
      manifest({{"ps", script(kLeavesWithWord)},
                {"chief", script("trap 'echo chief left > $EVENTS; exit 143' TERM; " + kHello +
                                 "[ $MUSTER_ATTEMPT = 1 ] && exit 0; " + kForEver)},
                {"worker", script(kLeavesWithWord)}}));
  auto run = job.run();
  job.next_events(3);
  run->signal(SIGINT);
  EXPECT_THAT(job.next_events(2), ElementsAre("chief left", "worker left"));
  EXPECT_EQ(job.next_event(), "ps left");
  EXPECT_EQ(run->wait(), 130) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("Suspended"));
  EXPECT_EQ(job.state()["status"]["restarts"], 0);

  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("script: resumes"));
  EXPECT_EQ(job.state()["status"]["restarts"], 0);
}

TEST(MusterRun, kills_at_once_on_the_second_interrupt) {
  ScriptJob job(
      manifest({{"chief", script("trap 'echo asked > $EVENTS' TERM; " + kHello + kForEver)}}));
  auto run = job.run();
  const pid_t chief = pid_in(job.next_event());
  run->signal(SIGTERM);
  EXPECT_EQ(job.next_event(), "asked");
  run->signal(SIGTERM);
  EXPECT_EQ(run->wait(), 143) << run->output();
  EXPECT_NE(::kill(chief, 0), 0);
}

TEST(MusterRun, kills_a_replica_that_ignores_sigterm_when_its_grace_is_over) {
  ScriptJob job(manifest({{"chief", script(kHello + "read go < $GATE")},
                          {"worker", script("trap '' TERM; " + kHello + kForEver, "",
                                            "terminationGracePeriodSeconds: 1")}}));
  auto run = job.run();
  const auto hellos = job.next_events(2);
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("worker-0 did not leave within 1 s of SIGTERM"));
  EXPECT_NE(::kill(pid_in(hellos[1]), 0), 0);
}

TEST(MusterRun, leaves_no_process_when_it_is_killed_and_resumes_without_counting) {
  // The chief's child is one that the kernel does not end with its parent.
  ScriptJob job(manifest(
      {{"chief", script("[ $MUSTER_ATTEMPT = 1 ] && exit 0; sh -c 'echo child 0 $$$$ > $EVENTS; " +
                        kForEver + "' & " + kHello + kForEver)}}));
  auto run = job.run();
  const auto hellos = job.next_events(2);
  const pid_t runner = run->pid();
  run->signal(SIGKILL);
  for (const std::string& hello : hellos) await_end_of(pid_in(hello));
  EXPECT_EQ(run->wait(), 137);
  auto status = job.muster({"status", "run"});
  EXPECT_EQ(status->wait(), kSuccess);
  EXPECT_THAT(status->output(),
              AllOf(HasSubstr("To resume: muster run "), Not(HasSubstr("JOB.yaml"))));
  EXPECT_THAT(status->output(),
              AllOf(HasSubstr("script: Interrupted: the `muster run` that ran the job (process " +
                              std::to_string(runner) + ") is gone\n"),
                    ContainsRegex("chief-0 +lost"), HasSubstr("chief 0/1 ready"),
                    Not(HasSubstr("Running")), Not(HasSubstr("127.0.0.1"))));

  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess) << again->output();
  EXPECT_THAT(again->output(), HasSubstr("chief-0 was lost with the `muster run`"));
  EXPECT_EQ(job.state()["status"]["restarts"], 0);
}

TEST(MusterRun, leaves_no_session_of_a_replica_when_it_is_killed) {
  ScriptJob job(
      manifest({{"chief", script("setsid sh -c 'echo child 0 $$$$ > $EVENTS; exec sleep 1000' & " +
                                 kHello + kForEver)}}));
  auto run = job.run();
  const auto hellos = job.next_events(2);
  run->signal(SIGKILL);
  for (const std::string& hello : hellos) await_end_of(pid_in(hello));
  EXPECT_EQ(run->wait(), 137);
}

TEST(MusterRun, refuses_a_directory_that_another_run_has) {
  ScriptJob job(manifest({{"chief", script(kHello + "read go < $GATE")}}));
  auto run = job.run();
  job.next_event();
  auto other = job.run();
  EXPECT_EQ(other->wait(), kUnavailable);
  EXPECT_THAT(other->output(), HasSubstr("process " + std::to_string(run->pid())));
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess);
}

TEST(MusterRun, stop_asks_the_run_to_leave_and_waits_for_it) {
  ScriptJob job(manifest({{"chief", script(kLeavesWithWord)}}));
  auto run = job.run();
  job.next_event();
  auto stop = job.muster({"stop", "run"});
  EXPECT_EQ(stop->wait(), kSuccess);
  EXPECT_THAT(stop->output(), HasSubstr("Suspended"));
  EXPECT_EQ(run->wait(), 143);
  EXPECT_EQ(job.muster({"stop", "run"})->wait(), kSuccess);
}

TEST(MusterRun, status_of_a_suspended_job_shows_nothing_that_is_gone) {
  ScriptJob job(manifest({{"chief", script("trap 'exit 0' TERM; " + kHello + kForEver)}}));
  auto run = job.run();
  job.next_event();
  auto before = job.muster({"status", "run"});
  EXPECT_EQ(before->wait(), kSuccess);
  EXPECT_THAT(before->output(), ContainsRegex("chief-0 +running .*127\\.0\\.0\\.1:"));
  EXPECT_EQ(job.muster({"stop", "run"})->wait(), kSuccess);
  EXPECT_EQ(run->wait(), 143);
  auto after = job.muster({"status", "run"});
  EXPECT_EQ(after->wait(), kSuccess);
  EXPECT_THAT(after->output(), AllOf(ContainsRegex("chief-0 +stopped"),
                                     HasSubstr("  Suspended: the job is suspended"),
                                     Not(HasSubstr("127.0.0.1")), Not(HasSubstr("succeeded"))));
}

TEST(MusterRun, stop_now_leaves_no_process_behind_and_counts_no_restart) {
  ScriptJob job(manifest(
      {{"chief", script("trap '' TERM; sh -c 'trap \"\" TERM; echo child 0 $$$$ > $EVENTS; " +
                        kForEver + "' & " + kHello + kForEver)}}));
  auto run = job.run();
  const std::string leader = job.next_events(2)[0];
  auto stop = job.muster({"stop", "run", "--now"});
  EXPECT_EQ(stop->wait(), kSuccess) << stop->output();
  ASSERT_THAT(leader, StartsWith("chief-0 "));
  EXPECT_FALSE(local::is_group_alive(pid_in(leader)));
  EXPECT_EQ(run->wait(), 143) << run->output();
  EXPECT_EQ(job.state()["status"]["restarts"], 0);
}

TEST(MusterRun, wakes_a_stopped_replica_so_that_it_leaves_when_asked_to) {
  ScriptJob job(manifest({{"chief", script(kLeavesWithWord)}}));
  auto run = job.run();
  ::kill(pid_in(job.next_event()), SIGSTOP);
  run->signal(SIGINT);
  EXPECT_EQ(job.next_event(), "chief left");
  EXPECT_EQ(run->wait(), 130) << run->output();
}

TEST(MusterRun, shows_a_directory_from_the_root_with_its_slash) {
  ScriptJob job(manifest({{"chief", script("exit 0")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  Muster status({"status", job.directory()}, "/", {});
  EXPECT_EQ(status.wait(), kSuccess);
  EXPECT_THAT(status.output(), HasSubstr("directory  " + job.directory().string()));
}

TEST(MusterRun, status_tells_of_running_and_of_stopped_jobs) {
  ScriptJob job(manifest({{"chief", script(kHello + "read go < $GATE")}}));
  auto run = job.run();
  const pid_t chief = pid_in(job.next_event());
  auto status = job.muster({"status", "run", "-o", "json"});
  EXPECT_EQ(status->wait(), kSuccess);
  const Json running = Json::parse(status->output());
  EXPECT_EQ(running["runner"], run->pid());
  EXPECT_EQ(running["replicas"][0]["pid"], chief);
  EXPECT_EQ(running["state"], "Running");
  job.open_gate();
  EXPECT_EQ(run->wait(), kSuccess);
  auto later = job.muster({"status", "run", "-o", "json"});
  EXPECT_EQ(later->wait(), kSuccess);
  const Json finished = Json::parse(later->output());
  EXPECT_EQ(finished["state"], "Succeeded");
  EXPECT_TRUE(finished["runner"].is_null());
  EXPECT_EQ(finished["replicas"][0]["state"], "succeeded");
}

TEST(MusterRun, logs_are_merged_and_named_and_chosen_by_role) {
  ScriptJob job(manifest({{"chief", script("echo from chief")},
                          {"worker", script("echo other; " + kHello + kForEver)}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  auto all = job.muster({"logs", "run"});
  EXPECT_EQ(all->wait(), kSuccess);
  EXPECT_THAT(all->output(), HasSubstr("chief-0  | from chief"));
  auto chosen = job.muster({"logs", "run", "worker", "--follow"});
  EXPECT_EQ(chosen->wait(), kSuccess);
  EXPECT_THAT(chosen->output(), Not(HasSubstr("from chief")));
  EXPECT_EQ(job.muster({"logs", "run", "nobody"})->wait(), kBadInput);
}

TEST(MusterRun, gives_scripts_a_tf_config_without_the_evaluator) {
  const std::string print =
      "python3 -c 'import json, os; c = json.loads(os.environ[\"TF_CONFIG\"]); "
      "print(sorted((r, len(a)) for r, a in c[\"cluster\"].items()), "
      "c[\"task\"][\"type\"], c[\"task\"][\"index\"])' > $EVENTS";
  ScriptJob job(manifest({{"ps", script(kForEver)},
                          {"master", script(print)},
                          {"worker", script(kForEver, "replicas: 2")},
                          {"evaluator", script("exit 0")}}));
  auto run = job.run();
  EXPECT_EQ(job.next_event(), "[('master', 1), ('ps', 1), ('worker', 2)] master 0");
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
}

TEST(MusterRun, sets_no_tf_config_for_a_job_of_one_replica) {
  ScriptJob job(manifest({{"worker", script("echo ${TF_CONFIG-unset} > $EVENTS")}}));
  job.set("TF_CONFIG", "of somebody else");
  auto run = job.run();
  EXPECT_EQ(job.next_event(), "unset");
  EXPECT_EQ(run->wait(), kSuccess);
}

// With the TensorFlow of build/venv, which deploy/setup/python.sh makes; without it the test fails.
TEST(MusterRun, runs_a_tensorflow_script_that_finds_its_peers_in_tf_config) {
  ScriptJob job("");
  const char* path = std::getenv("PATH");
  job.set("PATH", std::string(MUSTER_SOURCE_DIR "/build/venv/bin:") + (path ? path : ""));
  auto run =
      job.muster({"run", MUSTER_SOURCE_DIR "/examples/tensorflow.yaml", "--directory", "run"});
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("tensorflow: Succeeded"));
  EXPECT_THAT(job.log("worker-0"), HasSubstr("worker-0 of 2: loss "));
  EXPECT_THAT(job.log("worker-0"), HasSubstr("y = 2.00 x + 10.00"));
}

TEST(MusterRun, runs_a_script_that_is_told_its_peers_by_options) {
  ScriptJob job("");
  const char* path = std::getenv("PATH");
  job.set("PATH", std::string(MUSTER_SOURCE_DIR "/build/venv/bin:") + (path ? path : ""));
  auto run = job.muster(
      {"run", MUSTER_SOURCE_DIR "/examples/tensorflow-options.yaml", "--directory", "run"});
  EXPECT_EQ(run->wait(), kSuccess) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("tensorflow-options: Succeeded"));
  EXPECT_THAT(job.log("worker-0"), HasSubstr("y = 2.00 x + 10.00"));
}

// Takes a port of 127.0.0.1 until it goes away.
Descriptor take_port(int port) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(socket.get(), 1), 0);
  return socket;
}

TEST(MusterRun, chooses_another_port_on_resuming_if_one_is_taken_and_says_which) {
  ScriptJob job(
      manifest({{"chief", script("[ $MUSTER_ATTEMPT = 1 ] && exit 0; " + kHello + kForEver)},
                {"worker", script(kForEver)}}));
  auto run = job.run();
  job.next_event();
  run->signal(SIGINT);
  EXPECT_EQ(run->wait(), 130);
  const int port = job.state()["ports"]["worker-0"];
  const Descriptor taken = take_port(port);
  auto again = job.run();
  EXPECT_EQ(again->wait(), kSuccess);
  EXPECT_THAT(again->output(),
              HasSubstr("port " + std::to_string(port) + " of worker-0 is in use"));
  EXPECT_NE(job.state()["ports"]["worker-0"], port);
}

TEST(MusterRun, refuses_a_command_that_is_not_there_and_writes_nothing) {
  ScriptJob job(manifest({{"chief",
                           "{template: {spec: {containers: [{name: trainer, command: "
                           "[no-such-program]}]}}}"}}));
  auto run = job.run();
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(),
              HasSubstr("job.yaml:6: spec.replicaSpecs.chief.template.spec.containers[0].command[0]"
                        ": expected a program of this machine, found \"no-such-program\", which is "
                        "no executable file on PATH"));
  EXPECT_FALSE(std::filesystem::exists(job.directory()));
}

TEST(MusterRun, refuses_a_directory_that_cannot_be_written) {
  ScriptJob job(manifest({{"chief", script("exit 0")}}));
  std::ofstream(job.folder() / "file") << "not a folder";
  auto run = job.muster({"run", "job.yaml", "--directory", "file/run"});
  EXPECT_EQ(run->wait(), kCannotWrite);
  EXPECT_THAT(run->output(), HasSubstr("file/run"));
}

TEST(MusterRun, refuses_a_directory_of_another_job) {
  ScriptJob job(manifest({{"chief", script("exit 0")}}));
  EXPECT_EQ(job.run()->wait(), kSuccess);
  auto run = job.muster({"run", "job.yaml", "--directory", "run", "--set", "metadata.name=other"});
  EXPECT_EQ(run->wait(), kBadInput);
  EXPECT_THAT(run->output(),
              HasSubstr("expected a directory of the job other, found one of script"));
}

TEST(MusterRun, fails_at_once_on_a_permanent_code_of_the_trainer) {
  ScriptJob job("");
  std::ofstream(job.folder() / "trainer")
      << "#!/bin/sh\ngrep -q batchSize $MUSTER_TRAINING || exit 1\necho loss is nan\nexit 90\n";
  std::filesystem::permissions(job.folder() / "trainer", std::filesystem::perms::owner_all);
  job.set("MUSTER_TRAINER", job.folder() / "trainer");
  auto run =
      job.muster({"run", MUSTER_SOURCE_DIR "/examples/mnist-mlp.yaml", "--directory", "run"});
  EXPECT_EQ(run->wait(), kDiverged) << run->output();
  EXPECT_THAT(run->output(), HasSubstr("the loss is not finite"));
  EXPECT_THAT(run->output(), HasSubstr("    loss is nan"));
}

}  // namespace
}  // namespace muster::test
