#pragma once

#include <string>
#include <system_error>

namespace muster {

// Returns the words for a value of errno, "No such file or directory". Thread-safe.
inline std::string system_words(int error) {
  return std::generic_category().message(error);
}

}  // namespace muster
