#include "tests/integration/trainer/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>

#include "common/system/descriptor.h"

extern char** environ;

namespace muster::integration {

namespace {

[[noreturn]] void become(std::vector<char*>& arguments, std::vector<char*>& environment, int log,
                         const Process::Limits& limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is killed leaves nobody behind
  dup2(log, 1);
  dup2(log, 2);
  if (limits.file_bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{*limits.file_bytes, *limits.file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  execve(arguments[0], arguments.data(), environment.data());
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& command,
                 const std::map<std::string, std::string>& more, const std::filesystem::path& log,
                 const Limits& limits) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry; ++entry) entries.emplace_back(*entry);
  for (const auto& [name, value] : more) entries.push_back(name + "=" + value);
  std::vector<char*> arguments, environment;
  for (const auto& text : command) arguments.push_back(const_cast<char*>(text.c_str()));
  for (const auto& text : entries) environment.push_back(const_cast<char*>(text.c_str()));
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  // Here, so that it is there for who reads it at once.
  const Descriptor file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ == 0) become(arguments, environment, file.get(), limits);
}

Process::~Process() {
  if (running()) {
    signal(SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
}

void Process::signal(int number) {
  if (code_) return;
  kill(pid_, number);
  // SIGSTOP is carried out by one thread of the process, once it runs: until then others go on.
  siginfo_t info{};
  if (number == SIGSTOP)
    waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
}

bool Process::running() {
  if (code_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == 0) return true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

long Process::peak_memory() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stol(line.substr(6)) / 1024;
  return 0;
}

std::optional<int> Process::wait(std::chrono::seconds most) {
  const auto until = std::chrono::steady_clock::now() + most;
  while (running()) {
    if (std::chrono::steady_clock::now() > until) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return code_;
}

const std::filesystem::path& scratch() {
  struct Folder {
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / ("muster-trainer-" + std::to_string(getpid()));
    ~Folder() {
      std::error_code error;
      if (!testing::UnitTest::GetInstance()->Failed()) std::filesystem::remove_all(path, error);
    }
  };
  static const Folder folder;
  return folder.path;
}

}  // namespace muster::integration
