#include "operator/local/processes/process_table.h"

#include <fcntl.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>

#include "common/system/descriptor.h"
#include "common/text/whole_number.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

// If the process ends while its files are read, returns the part that was read.
std::string read_proc(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char bytes[4096];
  while (file) {
    const ssize_t got = ::read(file.get(), bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(bytes, static_cast<size_t>(got));
  }
  return text;
}

struct Stat {
  char state = '?';
  pid_t group = 0;
  uint64_t start_time = 0;
};

// The name, in parentheses, may hold spaces and parentheses itself: the last ')' ends it.
std::optional<Stat> read_stat(pid_t pid) {
  const std::string text = read_proc("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  Stat stat;
  pid_t parent = 0;
  fields >> stat.state >> parent >> stat.group;
  std::string skipped;
  for (int field = 6; field < 22; ++field) fields >> skipped;
  fields >> stat.start_time;
  if (!fields) return std::nullopt;
  return stat;
}

std::string boot_id() {
  std::string id = read_proc("/proc/sys/kernel/random/boot_id");
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

bool has_ended(char state) {
  return state == 'Z' || state == 'X';
}

bool has_variables(pid_t pid, const std::vector<std::string>& marks) {
  // Each variable ends with a zero byte; here the first one also has a zero byte before it.
  const std::string environment =
      std::string(1, '\0') + read_proc("/proc/" + std::to_string(pid) + "/environ");
  return std::ranges::all_of(marks, [&](const std::string& mark) {
    return environment.find('\0' + mark + '\0') != std::string::npos;
  });
}

// Returns the processes that have not ended of which is_wanted(pid, Stat) is true.
template <class IsWanted>
std::vector<pid_t> living(const IsWanted& is_wanted) {
  std::vector<pid_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    const auto pid = whole_number<pid_t>(name);
    if (!pid) continue;
    const std::optional<Stat> stat = read_stat(*pid);
    if (stat && !has_ended(stat->state) && is_wanted(*pid, *stat)) found.push_back(*pid);
  }
  return found;
}

std::vector<pid_t> members_of(pid_t group) {
  return living([&](pid_t, const Stat& stat) { return stat.group == group; });
}

// Returns the number of processes.
int kill_each(const std::vector<pid_t>& processes) {
  for (const pid_t pid : processes) ::kill(pid, SIGKILL);
  return static_cast<int>(processes.size());
}

}  // namespace

std::string ProcessIdentity::text() const {
  return std::to_string(pid) + " " + std::to_string(start_time) + " " + boot;
}

std::optional<ProcessIdentity> ProcessIdentity::parse(const std::string& text) {
  ProcessIdentity identity;
  std::istringstream fields(text);
  fields >> identity.pid >> identity.start_time >> identity.boot;
  // Signals to pid 0, 1 and below mean something else.
  if (!fields || identity.pid <= 1) return std::nullopt;
  return identity;
}

std::optional<ProcessIdentity> ProcessIdentity::of(pid_t pid) {
  const std::optional<Stat> stat = read_stat(pid);
  if (!stat) return std::nullopt;
  return ProcessIdentity{pid, stat->start_time, boot_id()};
}

bool is_alive(const ProcessIdentity& process) {
  const std::optional<Stat> stat = read_stat(process.pid);
  return stat && !has_ended(stat->state) && stat->start_time == process.start_time &&
         boot_id() == process.boot;
}

bool is_group_alive(pid_t group) {
  return !members_of(group).empty();
}

int kill_group(const ProcessIdentity& leader, const std::string& mark) {
  if (is_alive(leader)) {
    const int members = static_cast<int>(members_of(leader.pid).size());
    ::kill(-leader.pid, SIGKILL);
    return members;
  }
  return kill_each(living([&](pid_t pid, const Stat& stat) {
    return stat.group == leader.pid && has_variables(pid, {mark});
  }));
}

int kill_marked(const std::vector<std::string>& marks) {
  if (marks.empty()) return 0;
  return kill_each(living(
      [&](pid_t pid, const Stat&) { return pid != ::getpid() && has_variables(pid, marks); }));
}

}  // namespace muster::local
