#include "operator/local/processes/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "common/system/file.h"
#include "operator/local/local_cluster.h"
#include "operator/local/run_lock.h"
#include "tests/unit/common/temporary_folder.h"

namespace muster::local {
namespace {

using testing::HasSubstr;

class ProcessTest : public testing::Test {
 protected:
  Launch sh(const std::string& script) {
    return {{"sh", "-c", script},
            {"PATH=/usr/local/bin:/usr/bin:/bin", "MARK=ours"},
            scratch_.path(),
            log(),
            scratch_.path() / "pid"};
  }
  std::filesystem::path log() const { return scratch_.path() / "log"; }

  static int wait(Process& process) {
    pollfd ended{process.descriptor(), POLLIN, 0};
    ::poll(&ended, 1, -1);
    return process.collect().value();
  }

  test::TemporaryFolder scratch_;
};

TEST_F(ProcessTest, tells_its_exit_code) {
  const std::pair<const char*, int> cases[] = {{"exit 0", 0},
                                               {"exit 7", 7},
                                               {"kill -KILL $$", 137},
                                               {"kill -TERM $$", 143},
                                               {"kill -SEGV $$", 139}};
  for (const auto& [script, code] : cases) {
    Process process(sh(script));
    EXPECT_EQ(wait(process), code) << script;
    EXPECT_EQ(process.collect(), code) << script;
  }
}

TEST_F(ProcessTest, appends_both_outputs_to_its_log) {
  std::ofstream(log()) << "before\n";
  Process process(sh("echo out; echo err >&2"));
  EXPECT_EQ(wait(process), 0);
  EXPECT_EQ(read_file(log()), "before\nout\nerr\n");
}

TEST_F(ProcessTest, ends_as_a_shell_would_if_its_command_cannot_be_executed) {
  Launch launch = sh("");
  launch.command = {"no-such-command"};
  Process missing(launch);
  EXPECT_EQ(wait(missing), 127);
  EXPECT_THAT(read_file(log()), HasSubstr("no-such-command: No such file"));
  launch.command = {scratch_.path().string()};
  Process folder(launch);
  EXPECT_EQ(wait(folder), 126);
}

TEST_F(ProcessTest, inherits_no_signal_mask_and_no_ignored_signals) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  Process process(sh("grep -E 'SigBlk|SigIgn' /proc/self/status"));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::signal(SIGPIPE, handler);
  EXPECT_EQ(wait(process), 0);
  std::istringstream lines(read_file(log()));
  std::string blocked, ignored;
  uint64_t blocked_mask = 1, ignored_mask = 1;
  lines >> blocked >> std::hex >> blocked_mask >> ignored >> ignored_mask;
  EXPECT_EQ(blocked_mask, 0u);
  // 32 and 33 are the C library's own: nobody can reset them, wherever they come from.
  EXPECT_EQ(ignored_mask & ~(uint64_t{3} << 31), 0u);
}

TEST_F(ProcessTest, inherits_no_open_files) {
  const Descriptor open(::dup(STDOUT_FILENO));
  Process process(sh("exec ls /proc/self/fd"));
  EXPECT_EQ(wait(process), 0);
  EXPECT_EQ(read_file(log()), "0\n1\n2\n3\n") << "3 is that of ls";
}

TEST_F(ProcessTest, records_who_it_is_while_it_runs) {
  Process process(sh("exec sleep 1000"));
  const auto identity = ProcessIdentity::parse(read_file(scratch_.path() / "pid"));
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->pid, process.pid());
  EXPECT_TRUE(is_alive(*identity));
  process.signal(SIGKILL);
  EXPECT_EQ(wait(process), 137);
  EXPECT_FALSE(is_alive(*identity));
  EXPECT_FALSE(std::filesystem::exists(scratch_.path() / "pid"));
}

TEST_F(ProcessTest, takes_its_whole_group_with_it) {
  // Whoever is of the group holds the FIFO open: its end of file is their end.
  const std::string fifo = scratch_.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const Descriptor reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK));
  Process process(sh("exec 3> " + fifo + "; echo x >&3; sleep 1000 & exit 5"));
  EXPECT_EQ(wait(process), 5);
  char bytes[8];
  ssize_t got;
  pollfd watched{reader.get(), POLLIN, 0};
  do {
    ASSERT_GT(::poll(&watched, 1, 60'000), 0) << "somebody is left";
    got = ::read(reader.get(), bytes, sizeof bytes);
  } while (got > 0);
  EXPECT_EQ(got, 0);
}

TEST_F(ProcessTest, is_killed_when_its_object_goes) {
  pid_t pid = 0;
  {
    const Process process(sh("trap '' TERM; sleep 1000"));
    pid = process.pid();
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

// Returns what a replica's environment has to distinguish it.
std::vector<std::string> marks_of(const std::string& job_uid, int attempt) {
  return {"PATH=/usr/local/bin:/usr/bin:/bin", "MUSTER_JOB_UID=" + job_uid, "MUSTER_ROLE=worker",
          "MUSTER_INDEX=0", "MUSTER_ATTEMPT=" + std::to_string(attempt)};
}

TEST_F(ProcessTest, takes_along_what_it_has_started_in_a_session_of_its_own) {
  const std::string uid = "process-test-" + std::to_string(::getpid());
  Launch next = sh("exec sleep 1000");
  next.environment = marks_of(uid, 1);
  next.pid_file.clear();
  Process successor(next);
  Launch launch = sh("setsid sleep 1000 & echo $! >child; exit 3");
  launch.environment = marks_of(uid, 0);
  Process process(launch);
  EXPECT_EQ(wait(process), 3);
  const pid_t child = std::stoi(read_file(scratch_.path() / "child"));
  const auto left = ProcessIdentity::of(child);
  EXPECT_TRUE(!left || !is_alive(*left));
  EXPECT_FALSE(successor.collect()) << "it is another attempt's";
}

TEST_F(ProcessTest, is_told_from_a_stranger_with_the_same_number) {
  Process process(sh("exec sleep 1000"));
  const ProcessIdentity self = ProcessIdentity::of(process.pid()).value();
  ProcessIdentity earlier = self, other_boot = self;
  earlier.start_time -= 1;
  other_boot.boot = "another";
  EXPECT_TRUE(is_alive(self));
  EXPECT_FALSE(is_alive(earlier));
  EXPECT_FALSE(is_alive(other_boot));
  EXPECT_EQ(kill_group(earlier, "MARK=of somebody else"), 0);
  EXPECT_FALSE(process.collect());
  EXPECT_EQ(kill_group(self, "MARK=ours"), 1);
  EXPECT_EQ(wait(process), 137);
}

TEST_F(ProcessTest, left_over_is_ended_and_a_stranger_is_not) {
  const JobDirectory directory(scratch_.path() / "job");
  for (const char* name : {"ours-0", "stranger-0", "garbage-0"}) {
    muster::create_directories(directory.replica(name));
  }
  Launch launch = sh("exec sleep 1000");
  launch.pid_file = directory.pid_file("ours-0");
  Process ours(launch);
  launch.pid_file = scratch_.path() / "elsewhere";
  Process stranger(launch);
  ProcessIdentity stale = ProcessIdentity::of(stranger.pid()).value();
  stale.start_time -= 1;
  std::ofstream(directory.pid_file("stranger-0")) << stale.text();
  std::ofstream(directory.pid_file("garbage-0")) << "-1 2 3";
  EXPECT_EQ(end_leftovers(directory, "MARK=another job"), 1);
  EXPECT_EQ(wait(ours), 137);
  EXPECT_FALSE(stranger.collect());
}

TEST(ProcessIdentity, refuses_numbers_that_mean_more_than_one_process) {
  for (const char* text : {"", "x", "12", "0 1 b", "1 1 b", "-5 1 b", "12 34"}) {
    EXPECT_FALSE(ProcessIdentity::parse(text)) << text;
  }
  const ProcessIdentity identity{12, 34, "boot"};
  EXPECT_EQ(ProcessIdentity::parse(identity.text()), identity);
}

TEST(RunLock, names_its_holder_while_it_is_held) {
  const test::TemporaryFolder scratch;
  const JobDirectory directory(scratch.path());
  EXPECT_FALSE(RunLock::holder(directory));
  {
    const RunLock lock(directory);
    EXPECT_EQ(RunLock::holder(directory)->pid, ::getpid());
    try {
      const RunLock second(directory);
      ADD_FAILURE();
    } catch (const Unavailable& error) {
      EXPECT_THAT(error.what(), HasSubstr("process " + std::to_string(::getpid())));
    }
  }
  EXPECT_FALSE(RunLock::holder(directory));
  const RunLock again(directory);
}

TEST(LastLine, is_the_last_that_is_not_blank_of_this_attempt) {
  const test::TemporaryFolder scratch;
  const auto log = scratch.path() / "log";
  EXPECT_EQ(last_line_of(log, 0), "");
  std::ofstream(log, std::ios::binary) << "first\nsecond\n\n  \n";
  EXPECT_EQ(last_line_of(log, 0), "second");
  EXPECT_EQ(last_line_of(log, 6), "second");
  EXPECT_EQ(last_line_of(log, 13), "");
  EXPECT_EQ(last_line_of(log, 1000), "");
  std::ofstream(log, std::ios::binary) << std::string(100'000, 'x');
  EXPECT_EQ(last_line_of(log, 0).size(), 4096u);
}

}  // namespace
}  // namespace muster::local
