#include "operator/local/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>

#include "common/error.h"
#include "common/system/system_words.h"

namespace muster::local {

namespace {

// Closes everything except the lock and the pipe: a reader of the parent's output must see its end
// when the parent ends, not when the guard ends.
void leave_terminal(int lock, int pipe) {
  ::setsid();
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "muster-guard");
  const int null = ::open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  const unsigned low = static_cast<unsigned>(std::min(lock, pipe));
  const unsigned high = static_cast<unsigned>(std::max(lock, pipe));
  if (low > 3) ::close_range(3, low - 1, 0);
  if (high > low + 1) ::close_range(low + 1, high - 1, 0);
  ::close_range(high + 1, ~0U, 0);
}

void wait_for_end_of_file(int pipe) {
  char byte = 0;
  ssize_t got;
  while ((got = ::read(pipe, &byte, 1)) > 0 || (got < 0 && errno == EINTR)) {
  }
}

}  // namespace

Guard::Guard(const JobDirectory& directory, const RunLock& lock, const std::string& mark) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Unavailable("cannot make a pipe: " + system_words(errno));
  }
  const Descriptor news(ends[0]);
  alive_ = Descriptor(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) {
    throw Unavailable("cannot start a process: " + system_words(errno));
  }
  if (pid_ > 0) return;
  alive_.reset();
  leave_terminal(lock.descriptor(), news.get());
  wait_for_end_of_file(news.get());
  try {
    end_leftovers(directory, mark);
  } catch (const std::exception&) {
    // Nobody is left to report the error to; the next `muster run` tries again.
  }
  ::_exit(0);
}

Guard::~Guard() {
  alive_.reset();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace muster::local
