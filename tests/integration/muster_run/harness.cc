#include "tests/integration/muster_run/harness.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "common/exit_code.h"
#include "tests/slowdown.h"

namespace muster::test {

namespace {

namespace fs = std::filesystem;

// What never happens is noticed; nothing is measured by it.
constexpr int kPatienceMilliseconds = 60'000 * kSlowdown;

[[noreturn]] void give_up(const std::string& what, const std::string& seen) {
  throw std::runtime_error("waited in vain for " + what + "; seen so far:\n" + seen);
}

bool is_readable(int fd) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, kPatienceMilliseconds) > 0;
}

std::vector<std::string> with_environment(const std::map<std::string, std::string>& more) {
  std::vector<std::string> result;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!more.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : more) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (std::string& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

Descriptor make_fifo(const fs::path& path) {
  if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo " + path.string());
  // Open for both, so that it neither blocks nor ends when a script closes it.
  return Descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
}

}  // namespace

Muster::Muster(const std::vector<std::string>& arguments, const fs::path& directory,
               const std::map<std::string, std::string>& environment,
               const std::map<int, uint64_t>& limits) {
  std::vector<std::string> words = {MUSTER_BINARY_DIR "/bin/muster"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = with_environment(environment);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(variables);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
  pipe_ = Descriptor(ends[0]);
  const Descriptor write_end(ends[1]);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::dup2(write_end.get(), STDOUT_FILENO);
  ::dup2(write_end.get(), STDERR_FILENO);
  for (const auto& [resource, most] : limits) {
    const rlimit limit{most, most};
    ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  }
  if (::chdir(directory.c_str()) == 0) ::execve(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

Muster::~Muster() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Muster::signal(int number) const {
  ::kill(pid_, number);
}

bool Muster::read_some() {
  if (!is_readable(pipe_.get())) give_up("output", output_);
  char bytes[4096];
  const ssize_t got = ::read(pipe_.get(), bytes, sizeof bytes);
  if (got > 0) output_.append(bytes, static_cast<size_t>(got));
  return got > 0;
}

void Muster::await_output(const std::string& text) {
  while (output_.find(text) == std::string::npos) {
    if (!read_some()) give_up("\"" + text + "\"", output_);
  }
}

void Muster::await_more() {
  if (!read_some()) give_up("more output", output_);
}

bool Muster::has_ended() const {
  siginfo_t ended{};
  const int failed = ::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT);
  return failed != 0 || ended.si_pid != 0;
}

int Muster::wait() {
  while (read_some()) {
  }
  int status = 0;
  ::waitpid(std::exchange(pid_, 0), &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

ScriptJob::ScriptJob(const std::string& manifest) {
  std::ofstream(folder() / "job.yaml") << manifest;
  events_ = make_fifo(folder() / "events");
  gate_ = make_fifo(folder() / "gate");
  set("EVENTS", folder() / "events");
  set("GATE", folder() / "gate");
}

std::unique_ptr<Muster> ScriptJob::muster(std::vector<std::string> arguments) {
  return std::make_unique<Muster>(arguments, folder(), environment_, limits_);
}

std::string ScriptJob::next_event() {
  while (unread_.find('\n') == std::string::npos) {
    if (!is_readable(events_.get())) give_up("an event", unread_);
    char bytes[4096];
    const ssize_t got = ::read(events_.get(), bytes, sizeof bytes);
    if (got > 0) unread_.append(bytes, static_cast<size_t>(got));
  }
  const size_t end = unread_.find('\n');
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

std::vector<std::string> ScriptJob::next_events(int count) {
  std::vector<std::string> events;
  for (int i = 0; i < count; ++i) events.push_back(next_event());
  std::ranges::sort(events);
  return events;
}

void ScriptJob::open_gate() {
  if (::write(gate_.get(), "\n", 1) != 1) throw std::runtime_error("gate");
}

Json ScriptJob::state() const {
  return Json::parse(read_text(directory() / "job.json"));
}

pid_t ScriptJob::pid_of(const std::string& directory, const std::string& replica) {
  auto status = muster({"status", directory, "-o", "json"});
  EXPECT_EQ(status->wait(), kSuccess) << status->output();
  const Json parsed = Json::parse(status->output());
  for (const Json& one : parsed["replicas"])
    if (one["name"] == replica) return one["pid"];
  throw std::runtime_error("no replica " + replica);
}

std::string ScriptJob::log(const std::string& replica) const {
  return read_text(directory() / "logs" / (replica + ".log"));
}

std::string manifest(const std::vector<std::pair<std::string, std::string>>& roles,
                     const std::string& spec) {
  std::string text =
      "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: script}\nspec:\n" +
      spec + "  replicaSpecs:\n";
  for (const auto& [role, replica] : roles) text += "    " + role + ": " + replica + "\n";
  return text;
}

std::string script(const std::string& text, const std::string& more, const std::string& pod) {
  return "{" + more + (more.empty() ? "" : ", ") + "template: {spec: {" + pod +
         (pod.empty() ? "" : ", ") + "containers: [{name: trainer, command: [sh, -c, " +
         Json(text).dump() + "]}]}}}";
}

void await_end_of(pid_t pid) {
  const Descriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process && !is_readable(process.get())) {
    give_up("the end of process " + std::to_string(pid), "");
  }
}

// The folder it will be in may not be there yet, so that nothing can be watched but the file.
void await_file(const fs::path& path) {
  constexpr int kPeriodMilliseconds = 10;
  for (int waited = 0; !fs::exists(path); waited += kPeriodMilliseconds) {
    if (waited > kPatienceMilliseconds) give_up(path.string(), "");
    ::poll(nullptr, 0, kPeriodMilliseconds);
  }
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace muster::test
