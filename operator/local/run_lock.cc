#include "operator/local/run_lock.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <system_error>

#include "common/error.h"
#include "common/system/file.h"
#include "common/system/system_words.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

constexpr auto kGuardTakesAtMost = std::chrono::seconds(10);
constexpr std::chrono::seconds kMarkedTakeAtMost{5};

std::optional<ProcessIdentity> identity_in(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  try {
    return ProcessIdentity::parse(read_file(path));
  } catch (const std::runtime_error&) {
    return std::nullopt;  // the file is gone
  }
}

void pause_briefly() {
  ::poll(nullptr, 0, 20);
}

// Returns true once the lock is ours, false while another process has it.
bool try_lock(int file, const fs::path& path) {
  while (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) {
      throw WriteError("cannot lock " + path.string() + ": " + system_words(errno));
    }
  }
  return true;
}

[[noreturn]] void refuse(const JobDirectory& directory, const std::string& who) {
  throw Unavailable(directory.root().string() + ": another `muster run` (" + who +
                    ") runs this job; wait for it, end it with `muster stop " +
                    directory.root().string() + "`, or choose another --directory");
}

}  // namespace

RunLock::RunLock(const JobDirectory& directory) {
  const fs::path path = directory.lock();
  file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file_) {
    throw WriteError("cannot write " + path.string() + ": " + system_words(errno));
  }
  const auto until = std::chrono::steady_clock::now() + kGuardTakesAtMost;
  while (!try_lock(file_.get(), path)) {
    const std::optional<ProcessIdentity> who = identity_in(path);
    if (who && is_alive(*who)) refuse(directory, "process " + std::to_string(who->pid));
    if (std::chrono::steady_clock::now() > until) refuse(directory, "of an unknown process");
    pause_briefly();
  }
  const std::string self = ProcessIdentity::of(::getpid()).value().text() + "\n";
  if (::ftruncate(file_.get(), 0) != 0 ||
      ::pwrite(file_.get(), self.data(), self.size(), 0) != static_cast<ssize_t>(self.size())) {
    throw WriteError("cannot write " + path.string() + ": " + system_words(errno));
  }
}

std::optional<ProcessIdentity> RunLock::last_holder(const JobDirectory& directory) {
  return identity_in(directory.lock());
}

std::optional<ProcessIdentity> RunLock::holder(const JobDirectory& directory) {
  const fs::path path = directory.lock();
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || ::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  const std::optional<ProcessIdentity> who = identity_in(path);
  return who && is_alive(*who) ? who : std::nullopt;
}

bool RunLock::wait_until_free(const JobDirectory& directory, std::chrono::seconds most) {
  const Descriptor file(::open(directory.lock().c_str(), O_RDONLY | O_CLOEXEC));
  const auto until = std::chrono::steady_clock::now() + most;
  while (file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() > until) return false;
    pause_briefly();
  }
  return true;
}

int end_leftovers(const JobDirectory& directory, const std::string& mark) {
  int ended = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory.replicas(), error)) {
    const fs::path pid_file = entry.path() / "pid";
    const std::optional<ProcessIdentity> leader = identity_in(pid_file);
    if (!leader) continue;
    ended += kill_group(*leader, mark);
    // SIGKILL is sent; the kernel only needs some time.
    while (kill_group(*leader, mark) > 0) pause_briefly();
    fs::remove(pid_file, error);
  }
  // Replicas may have started processes in groups of their own.
  ended += kill_marked({mark});
  const auto until = std::chrono::steady_clock::now() + kMarkedTakeAtMost;
  while (kill_marked({mark}) > 0 && std::chrono::steady_clock::now() < until) pause_briefly();
  return ended;
}

}  // namespace muster::local
