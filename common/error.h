#pragma once

#include <stdexcept>
#include <string>

namespace muster {

// Errors are of three kinds, and the kind travels with the exception. Messages name what was
// expected, what was found and where (file and line, field path, or peer).

// The error of a peer, a disk or a resource that may work again later: retry with back-off.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The error of bad input, which a retry cannot fix: tell the user. If no code catches it, the
// process exits with `exit_code` (see exit_code.h).
class Invalid : public std::runtime_error {
 public:
  explicit Invalid(const std::string& message, int exit_code = 65)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

// The error of a GPU that this process cannot use any more: no retry within the process helps.
// Other processes cannot use a lost GPU either, so try another machine.
class DeviceError : public std::runtime_error {
 public:
  DeviceError(const std::string& message, bool lost) : std::runtime_error(message), lost_(lost) {}
  bool lost() const { return lost_; }

 private:
  bool lost_;
};

}  // namespace muster
