#include "common/program/output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "common/exit_code.h"
#include "common/system/system_words.h"

namespace muster {

namespace {

bool has_lost_its_reader(int descriptor) {
  pollfd pipe{descriptor, POLLOUT, 0};
  return ::poll(&pipe, 1, 0) > 0 && (pipe.revents & POLLERR) != 0;
}

// Returns the error of one more write, for the system no longer knows that of an earlier one; 0 if
// there is none.
int error_of_another_write(int descriptor) {
  return ::write(descriptor, "\n", 1) < 0 ? errno : 0;
}

// Returns " (/dev/full)" if the descriptor is open on a file that has a path, else "".
std::string path_text(int descriptor) {
  std::error_code error;
  const auto link = "/proc/self/fd/" + std::to_string(descriptor);
  const std::string path = std::filesystem::read_symlink(link, error).string();
  return path.starts_with('/') ? " (" + path + ")" : "";
}

}  // namespace

void occupy_standard_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The system gives the lowest number that is free.
    if (::fcntl(descriptor, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
}

int finish_output(const std::string& program, int exit_code) {
  int error = std::fflush(stdout) == 0 ? 0 : errno;
  const bool failed = error != 0 || std::ferror(stdout) != 0;
  if (!failed || has_lost_its_reader(STDOUT_FILENO)) return exit_code;
  if (error == 0) error = error_of_another_write(STDOUT_FILENO);
  const std::string why = error != 0 ? ": " + system_words(error) : "";
  std::fprintf(stderr, "%s: cannot write standard output%s%s\n", program.c_str(),
               path_text(STDOUT_FILENO).c_str(), why.c_str());
  return exit_code == kSuccess ? kCannotWrite : exit_code;
}

}  // namespace muster
