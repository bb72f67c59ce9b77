#include "operator/local/processes/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>

#include "common/error.h"
#include "common/system/file.h"
#include "common/system/process.h"
#include "common/system/system_words.h"
#include "operator/local/processes/surroundings.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

// Time for a group to end after SIGKILL.
constexpr auto kGroupTakesAtMost = std::chrono::seconds(2);

// Everything that the child needs, prepared before the fork. After a fork in a program with
// threads, only async-signal-safe calls are allowed.
struct Prepared {
  std::string program;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const char* directory;
  int log;
  int null;
  int go_read;
  int go_write;
  pid_t parent;
};

[[noreturn]] void become(const Prepared& prepared) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(137);
  restore_signals();
  ::close(prepared.go_write);
  char go = 0;
  ssize_t got;
  while ((got = ::read(prepared.go_read, &go, 1)) < 0 && errno == EINTR) {
  }
  if (got != 1) ::_exit(137);
  ::dup2(prepared.null, STDIN_FILENO);
  ::dup2(prepared.log, STDOUT_FILENO);
  ::dup2(prepared.log, STDERR_FILENO);
  ::close_range(3, ~0U, 0);
  if (::chdir(prepared.directory) != 0) {
    say_failure("cannot enter", prepared.directory, errno);
    ::_exit(126);
  }
  execute(prepared.program.c_str(), prepared.arguments.data(), prepared.environment.data());
}

Descriptor open_log(const fs::path& path) {
  Descriptor log(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!log) throw WriteError("cannot write " + path.string(), errno);
  return log;
}

// Returns the variables that distinguish the processes of one start of a replica from all others;
// none if the environment lacks one.
std::vector<std::string> marks_in(const std::vector<std::string>& environment) {
  constexpr const char* kNames[] = {
      "MUSTER_JOB_UID=", "MUSTER_ROLE=", "MUSTER_INDEX=", "MUSTER_ATTEMPT="};
  std::vector<std::string> marks;
  for (const char* name : kNames) {
    const auto found = std::ranges::find_if(
        environment, [&](const std::string& variable) { return variable.starts_with(name); });
    if (found == environment.end()) return {};
    marks.push_back(*found);
  }
  return marks;
}

// Kills the rest of the group before the leader is reaped, because until then no other group can
// have its number. Then kills the processes that the replica has started in other groups.
std::optional<int> reap(pid_t pid, bool block, const std::vector<std::string>& marks) {
  siginfo_t info{};
  int result;
  const int flags = WEXITED | WNOWAIT | (block ? 0 : WNOHANG);
  while ((result = ::waitid(P_PID, pid, &info, flags)) < 0 && errno == EINTR) {
  }
  if (result != 0 || info.si_pid != pid) return std::nullopt;
  ::kill(-pid, SIGKILL);
  const auto until = std::chrono::steady_clock::now() + kGroupTakesAtMost;
  while (is_group_alive(pid) && std::chrono::steady_clock::now() < until) ::poll(nullptr, 0, 1);
  while (kill_marked(marks) > 0 && std::chrono::steady_clock::now() < until) ::poll(nullptr, 0, 1);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return exit_code_of(info);
}

}  // namespace

Process::Process(const Launch& launch)
    : pid_file_(launch.pid_file), marks_(marks_in(launch.environment)) {
  const Descriptor log = launch.log.empty() ? Descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3))
                                            : open_log(launch.log);
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Unavailable("cannot start " + launch.command.front() + ": " + system_words(errno));
  }
  const Descriptor go_read(ends[0]);
  const Descriptor go_write(ends[1]);
  const std::string& name = launch.command.front();
  const fs::path program =
      find_executable(name, path_in(launch.environment), launch.directory).value_or(name);
  const Prepared prepared{program.string(),
                          pointers(launch.command),
                          pointers(launch.environment),
                          launch.directory.c_str(),
                          log.get(),
                          null.get(),
                          go_read.get(),
                          go_write.get(),
                          ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) throw Unavailable("cannot start " + name + ": " + words_of_fork(errno));
  if (pid == 0) become(prepared);
  // Parent and child both call this: the group must exist before a signal is sent to it.
  ::setpgid(pid, pid);
  try {
    pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd_) throw Unavailable("cannot watch " + name + ": " + system_words(errno));
    identity_ = ProcessIdentity::of(pid).value_or(ProcessIdentity{pid, 0, ""});
    if (!pid_file_.empty()) write_file_atomically(pid_file_, identity_.text() + "\n");
    const char go = 1;
    if (::write(go_write.get(), &go, 1) != 1) {
      throw Unavailable("cannot start " + name + ": " + system_words(errno));
    }
  } catch (...) {
    ::kill(-pid, SIGKILL);
    reap(pid, true, marks_);
    throw;
  }
}

Process::Process(Process&& other) noexcept
    : identity_(std::exchange(other.identity_, {})),
      pidfd_(std::move(other.pidfd_)),
      pid_file_(std::move(other.pid_file_)),
      marks_(std::move(other.marks_)),
      exit_code_(other.exit_code_) {}

Process::~Process() {
  if (identity_.pid == 0 || exit_code_) return;
  signal(SIGKILL);
  reap(identity_.pid, true, marks_);
  std::error_code ignored;
  fs::remove(pid_file_, ignored);
}

void Process::signal(int number) const {
  if (!exit_code_) ::kill(-identity_.pid, number);
}

std::optional<int> Process::collect() {
  if (exit_code_) return exit_code_;
  exit_code_ = reap(identity_.pid, false, marks_);
  if (exit_code_) {
    std::error_code ignored;
    fs::remove(pid_file_, ignored);
  }
  return exit_code_;
}

}  // namespace muster::local
