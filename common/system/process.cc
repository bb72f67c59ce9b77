#include "common/system/process.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster {

namespace fs = std::filesystem;

std::optional<fs::path> find_executable(const std::string& command, const std::string& path,
                                        const fs::path& directory) {
  const auto is_executable = [](const fs::path& candidate) {
    std::error_code error;
    return fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0;
  };
  if (command.find('/') != std::string::npos) {
    const fs::path candidate = directory / command;
    return is_executable(candidate) ? std::optional(candidate) : std::nullopt;
  }
  size_t at = 0;
  while (!command.empty() && at <= path.size()) {
    const size_t end = std::min(path.find(':', at), path.size());
    const fs::path candidate = directory / path.substr(at, end - at) / command;
    if (is_executable(candidate)) return candidate;
    at = end + 1;
  }
  return std::nullopt;
}

fs::path own_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error);
}

int exit_code_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
  result.push_back(nullptr);
  return result;
}

void restore_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void say_failure(const char* what, const char* name, int error) {
  for (const char* part : {"muster: ", what, " ", name, ": ", strerrordesc_np(error), "\n"}) {
    if (part != nullptr && ::write(STDERR_FILENO, part, strlen(part)) < 0) return;
  }
}

void execute(const char* program, char* const* arguments, char* const* environment) {
  ::execve(program, arguments, environment);
  const int error = errno;
  say_failure("cannot run", arguments[0], error);
  ::_exit(error == ENOENT ? 127 : 126);
}

}  // namespace muster
