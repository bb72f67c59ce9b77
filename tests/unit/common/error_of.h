#pragma once

#include <string>

#include "common/error.h"

namespace muster::test {

// Returns what the Error says that `action` throws; "no error" if it throws nothing.
template <typename Error = Invalid, typename Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace muster::test
