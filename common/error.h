#pragma once

#include <stdexcept>
#include <string>

namespace muster {

// Errors are of three kinds, and the kind travels with the exception. Messages name what was
// expected, what was found and where (file and line, field path, or peer).

// The error of a peer, a disk or a resource that may be back later: retry with back-off.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The error of input that no retry will mend: tell the user. The process exits with `exit_code` if
// no code catches it (see exit_code.h).
class Invalid : public std::runtime_error {
 public:
  explicit Invalid(const std::string& message, int exit_code = 65)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The error of a GPU, which is of no more use to this process: no retry within it helps. A lost GPU
// is of no use to other processes either, so that another machine is to be tried.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const std::string& message, bool lost) : std::runtime_error(message), lost_(lost) {}
  bool lost() const { return lost_; }

 private:
  bool lost_;
};

}  // namespace muster
