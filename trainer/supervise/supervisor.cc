#include "trainer/supervise/supervisor.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>

#include "common/documents/json.h"
#include "common/environment.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/job/results.h"
#include "common/job/termination_message.h"
#include "common/program/log.h"
#include "common/system/file.h"
#include "common/system/process.h"
#include "common/system/signals.h"
#include "common/system/system_words.h"
#include "common/text/whole_number.h"
#include "trainer/supervise/oom_kills.h"

extern char** environ;

namespace muster::supervise {

namespace {

// Time for the group to end after SIGKILL.
constexpr auto kGroupTakesAtMost = std::chrono::seconds(2);
constexpr const char* kLimitVariable = "MUSTER_RESTARTS_IN_PLACE";
constexpr const char* kCountVariable = "MUSTER_RESTARTS";
constexpr const char* kLastExitVariable = "MUSTER_LAST_EXIT_CODE";
constexpr const char* kLogVariable = "MUSTER_TERMINATION_LOG";
constexpr const char* kStorageVariable = "MUSTER_STORAGE";
constexpr const char* kRoleVariable = "MUSTER_ROLE";

Unavailable failure(const std::string& what) {
  return Unavailable(what + ": " + system_words(errno));
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!variables.contains(std::string(text.substr(0, text.find('='))))) {
      environment.emplace_back(text);
    }
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

std::string path_to(const std::string& command) {
  const auto found =
      find_executable(command, environment_variable("PATH", "/usr/local/bin:/usr/bin:/bin"),
                      std::filesystem::current_path());
  return found ? found->string() : command;
}

bool asks_to_stop(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGQUIT;
}

void write_all(int to, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(to, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads the log; training continues
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

// Returns the time of the file's last change, in RFC 3339.
std::optional<std::string> time_of(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}Z", fmt::gmtime(status.st_mtime));
}

// Returns the progress at the end of a training, taken from its results; null if they have no step.
Json final_progress(const Json& results) {
  const int64_t step = integer_or(results, "step", -1);
  if (step < 0) return {};
  Json progress = {{"step", step}, {"totalSteps", step}, {"etaSeconds", 0}};
  if (!bool_or(results, "alreadyFinished", false)) progress["stepsHere"] = step;
  if (const Json& loss = member(results, "trainLoss"); loss.is_number())
    progress["loss"] = fmt::format("{:.6g}", loss.get<double>());
  if (const Json& accuracy = member(results, "trainAccuracy"); accuracy.is_number())
    progress["metrics"]["accuracy"] = accuracy;
  if (const std::string final_one = string_or(results, "checkpoint", ""); !final_one.empty()) {
    progress["lastCheckpointStep"] = step;
    if (const auto time = time_of(final_one)) progress["lastCheckpointTime"] = *time;
  }
  return progress;
}

}  // namespace

Options options_from_environment(std::vector<std::string> command) {
  Options options;
  options.command = std::move(command);
  if (const std::string path = environment_variable(kLogVariable); !path.empty())
    options.termination_log = path;
  if (const std::string storage = environment_variable(kStorageVariable); !storage.empty())
    options.folder = storage;
  options.evaluates = environment_variable(kRoleVariable) == "evaluator";
  const std::string text = environment_variable(kLimitVariable);
  if (text.empty()) return options;
  const auto restarts = whole_number<int>(text, 0);
  if (!restarts) {
    throw Invalid(
        std::string(kLimitVariable) + ": expected a number of at least 0, found \"" + text + "\"",
        kBadConfig);
  }
  options.restarts = *restarts;
  return options;
}

Supervisor::Supervisor(Options options) : options_(std::move(options)), rule_(options_.restarts) {
  // All signals except SIGCHLD are passed on to the trainer.
  signals_ = watch_signals(
      {SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT});
  if (!signals_) throw failure("cannot receive signals");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);  // PID 1 is a subreaper anyway
}

int Supervisor::run() {
  for (;;) {
    const uint64_t killed_before = oom_kills();
    start();
    End end = wait_for_end();
    end.out_of_memory = end.exit_code == 128 + SIGKILL && oom_kills() > killed_before;
    const bool again = is_restarted(end);
    leave_message(end);
    if (!again) return end.exit_code;
  }
}

void Supervisor::start() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw failure("cannot make a pipe");
  errors_ = Descriptor(ends[0]);
  const Descriptor child_end(ends[1]);
  ::fcntl(errors_.get(), F_SETFL, O_NONBLOCK);
  const std::string program = path_to(options_.command.front());
  const std::vector<std::string> environment =
      environment_with({{kCountVariable, std::to_string(rule_.total())},
                        {kLastExitVariable, std::to_string(exit_code_.value_or(0))}});
  const std::vector<char*> variables = pointers(environment);
  const std::vector<char*> arguments = pointers(options_.command);
  exit_code_.reset();
  last_line_ = {};
  const pid_t parent = ::getpid();
  child_ = ::fork();
  if (child_ < 0) throw failure("cannot start " + options_.command.front());
  if (child_ == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(128 + SIGKILL);
    restore_signals();
    ::dup2(child_end.get(), STDERR_FILENO);
    execute(program.c_str(), arguments.data(), variables.data());
  }
  // Parent and child both call this: the group must exist before it is signalled.
  ::setpgid(child_, child_);
}

Supervisor::End Supervisor::wait_for_end() {
  while (!exit_code_) {
    std::array<pollfd, 2> watched = {{{signals_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), -1) < 0 && errno != EINTR) throw failure("poll");
    pass_on();
    handle_signals();
  }
  clear_group();
  pass_on();
  handle_signals();  // a stop signal may have come meanwhile
  return {*exit_code_, false};
}

void Supervisor::handle_signals() {
  while (const std::optional<int> number = read_signal(signals_)) {
    if (*number == SIGCHLD) {
      reap();
      continue;
    }
    stopping_ = stopping_ || asks_to_stop(*number);
    if (!exit_code_) ::kill(-child_, *number);
  }
}

void Supervisor::reap() {
  siginfo_t info{};
  while (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    if (info.si_pid == child_) {
      ::kill(-child_, SIGKILL);  // no other process has the number yet
      exit_code_ = exit_code_of(info);
    }
    ::waitpid(info.si_pid, nullptr, 0);
    info = {};
  }
}

// Reaps the processes of the group, which have been killed. They are our children because their
// parents have ended.
void Supervisor::clear_group() {
  const auto until = std::chrono::steady_clock::now() + kGroupTakesAtMost;
  while (::waitpid(-child_, nullptr, WNOHANG) >= 0 && std::chrono::steady_clock::now() < until)
    ::poll(nullptr, 0, 1);
}

void Supervisor::pass_on() {
  std::array<char, 16384> bytes;
  while (errors_) {
    const ssize_t got = ::read(errors_.get(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errors_.reset();  // all processes have closed it
    if (got <= 0) return;
    const auto size = static_cast<size_t>(got);
    last_line_.add({bytes.data(), size});
    write_all(STDERR_FILENO, bytes.data(), size);
  }
}

bool Supervisor::is_restarted(const End& end) {
  if (end.exit_code == kSuccess || stopping_) return false;
  const std::string what = "the trainer ended with exit code " + std::to_string(end.exit_code) +
                           " (" + describe_exit_code(end.exit_code) +
                           (end.out_of_memory ? ", out of memory)" : ")");
  if (!rule_.restarts(end.exit_code, end.out_of_memory, RestartRule::Time::clock::now())) {
    log::error(what + "; it is not restarted in place", {{"exitCode", end.exit_code}});
    return false;
  }
  log::warning(what + "; it is restarted in place",
               {{"exitCode", end.exit_code}, {"restarts", rule_.total()}});
  return true;
}

void Supervisor::leave_message(const End& end) const {
  const Descriptor file(::open(options_.termination_log.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file) return;  // not in a pod
  TerminationMessage message{rule_.total(), message_of(last_line_.text()), {}};
  if (options_.folder.empty()) {
    // There are no results without a folder.
  } else if (options_.evaluates) {
    message.results = read_final_evaluation(options_.folder);
  } else if (end.exit_code == kSuccess) {
    message.results = read_results(options_.folder);
    message.progress = final_progress(message.results);
  }
  const std::string text = message.text() + "\n";
  write_all(file.get(), text.data(), text.size());
}

}  // namespace muster::supervise
