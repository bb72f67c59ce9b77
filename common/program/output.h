#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace muster {

// Functions that print a program's output for its user. A failure to write is reported once, by the
// last thing that the program does: finish_output().

// Prints as fmt::print does, but without its exception: a failure only sets the error mark of
// `out`.
template <typename... Arguments>
void print(FILE* out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

// Opens those of the descriptors 0, 1 and 2 that the caller has closed, on nothing: otherwise the
// first files that the program opens get their numbers, and its output. Writing there fails, as to
// a closed descriptor. Call it before anything is opened.
void occupy_standard_descriptors();

// Flushes standard output. Returns `exit_code`; where something could not be written, says so on
// standard error as `program` and returns kCannotWrite in the place of kSuccess. A closed pipe is
// no failure: its reader had seen enough.
int finish_output(const std::string& program, int exit_code);

}  // namespace muster
