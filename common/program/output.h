#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace muster {

// Functions that print a program's output for its user. A failure to write is reported once, by
// finish_output() at the end of the program.

// Prints like fmt::print, but throws nothing: a failure only sets the error mark of `out`.
template <typename... Arguments>
void print(FILE* out, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), out);
}

// Opens the descriptors 0, 1 and 2 on /dev/null if the caller has closed them. Otherwise the first
// files that the program opens would get these numbers, and the program's output. Writing to such a
// descriptor fails, like writing to a closed one. Call this before anything is opened.
void occupy_standard_descriptors();

// Flushes standard output. Returns `exit_code`; if something could not be written, says so on
// standard error as `program`, and returns kCannotWrite instead of kSuccess. A closed pipe is not a
// failure: its reader has read enough.
int finish_output(const std::string& program, int exit_code);

}  // namespace muster
