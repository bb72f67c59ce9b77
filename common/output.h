#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace muster {

// What a program prints for its user. That it could not be written is told once, by the last thing
// that the program does: finish_output().

// fmt::print without its exception: a failure leaves its mark on `out` alone.
template <typename... Arguments>
void print(FILE* out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

// Brings out what standard output still has to write. Returns `exit_code`; where something could
// not be written, says so on standard error as `program` and returns kCannotWrite in the place of
// kSuccess. A pipe whose reader has left is no failure: who closed it had seen enough.
int finish_output(const std::string& program, int exit_code);

}  // namespace muster
