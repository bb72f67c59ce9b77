#include "operator/local/hosts/session.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "common/environment.h"
#include "common/error.h"
#include "common/system/process.h"
#include "common/system/system_words.h"

namespace muster::local {

namespace {

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe(const std::string& what) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw Unavailable("cannot start " + what + ": " + system_words(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Descriptor unblocked(Descriptor end) {
  ::fcntl(end.get(), F_SETFL, O_NONBLOCK);
  return end;
}

}  // namespace

Session::Session(const std::vector<std::string>& command, Output output) {
  const std::string& name = command.front();
  Pipe in = make_pipe(name), out = make_pipe(name), errors = make_pipe(name);
  const std::string program =
      find_executable(name, environment_variable("PATH"), std::filesystem::current_path())
          .value_or(name);
  const std::vector<char*> arguments = pointers(command);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw Unavailable("cannot start " + name + ": " + system_words(errno));
  if (pid_ == 0) {
    ::setpgid(0, 0);  // the parent decides which signals to pass on
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(137);
    restore_signals();
    ::dup2(in.read.get(), STDIN_FILENO);
    if (output == Output::pipe) ::dup2(out.write.get(), STDOUT_FILENO);
    ::dup2(errors.write.get(), STDERR_FILENO);
    ::close_range(3, ~0U, 0);
    execute(program.c_str(), arguments.data(), environ);
  }
  input_ = unblocked(std::move(in.write));
  output_ = unblocked(std::move(out.read));
  errors_ = unblocked(std::move(errors.read));
}

Session::~Session() {
  end();
}

void Session::send(std::string& unsent) {
  if (!input_ || unsent.empty()) return;
  const ssize_t sent = ::write(input_.get(), unsent.data(), unsent.size());
  if (sent > 0) unsent.erase(0, static_cast<size_t>(sent));
  if (sent < 0 && errno != EAGAIN && errno != EINTR) close_input();
}

bool Session::read_some(const Descriptor& from, std::string& text) {
  char bytes[4096];
  const ssize_t got = ::read(from.get(), bytes, sizeof bytes);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  text.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

int Session::end() {
  constexpr int kMomentMs = 200;  // a process closes its output shortly before its end
  if (pid_ != 0) {
    const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    pollfd ended{process.get(), POLLIN, 0};
    if (::poll(&ended, 1, kMomentMs) <= 0) ::kill(pid_, SIGKILL);
  }
  return wait();
}

int Session::wait() {
  siginfo_t info{};
  const pid_t pid = std::exchange(pid_, 0);
  if (pid == 0) return 0;
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) < 0 && errno == EINTR) {
  }
  return exit_code_of(info);
}

}  // namespace muster::local
