#pragma once

#include <cstdlib>
#include <string>

namespace muster {

// Returns the value of a variable of this process's environment; `fallback` if it is unset or
// empty.
inline std::string environment_variable(const char* name, const std::string& fallback = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

}  // namespace muster
