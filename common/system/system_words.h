#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace muster {

// Returns the words for a value of errno, "No such file or directory"; for a limit of this process
// also its name for `ulimit`. Thread-safe.
inline std::string system_words(int error) {
  const std::string words = std::generic_category().message(error);
  switch (error) {
    case EMFILE:
      return words + " (ulimit -n)";
    case EFBIG:
      return words + " (ulimit -f)";
    case ENOMEM:
      return words + " (of the machine, or ulimit -v)";
    default:
      return words;
  }
}

}  // namespace muster
