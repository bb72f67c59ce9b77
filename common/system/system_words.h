#pragma once

#include <cerrno>
#include <exception>
#include <new>
#include <optional>
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

// Returns the words for an error of fork() or of the start of a thread.
inline std::string words_of_fork(int error) {
  return system_words(error) + (error == EAGAIN ? " (of the machine, or ulimit -u or -v)" : "");
}

// Returns the words for an exception by which the standard library says that the process has
// reached a limit; nothing for any other.
inline std::optional<std::string> limit_words(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr)
    return "out of memory: " + system_words(ENOMEM);
  const auto* by_system = dynamic_cast<const std::system_error*>(&error);
  if (by_system == nullptr || by_system->code() != std::errc::resource_unavailable_try_again)
    return std::nullopt;
  return "cannot start a thread: " + words_of_fork(EAGAIN);
}

}  // namespace muster
