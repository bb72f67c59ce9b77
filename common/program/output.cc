#include "common/program/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "common/exit_code.h"
#include "common/system/system_words.h"

namespace muster {

namespace {

bool has_lost_its_reader(int descriptor) {
  pollfd pipe{descriptor, POLLOUT, 0};
  return ::poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR) != 0;
}

}  // namespace

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The system gives the lowest number that is free.
    if (::fcntl(descriptor, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

int finish_output(const std::string& program, int exit_code) {
  const int error = std::fflush(stdout) == 0 ? 0 : errno;
  const bool failed = error != 0 || std::ferror(stdout) != 0;
  if (!failed || has_lost_its_reader(STDOUT_FILENO)) return exit_code;
  // The system no longer knows the reason of an earlier failure.
  const std::string why = error != 0 ? ": " + system_words(error) : "";
  std::fprintf(stderr, "%s: cannot write standard output%s\n", program.c_str(), why.c_str());
  return exit_code == kSuccess ? kCannotWrite : exit_code;
}

}  // namespace muster
