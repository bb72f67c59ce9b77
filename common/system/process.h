#pragma once

#include <signal.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster {

// Returns the file that execve would run as `command`. A command without a slash is looked up in
// `path` (like $PATH). Relative paths begin at `directory`. Returns nothing if there is no
// executable file.
std::optional<std::filesystem::path> find_executable(const std::string& command,
                                                     const std::string& path,
                                                     const std::filesystem::path& directory);

// Returns the file that this process runs; empty if that cannot be found out.
std::filesystem::path own_program();

// The exit code of a child that waitid() reported: its own, or 128 + n for signal n.
int exit_code_of(const siginfo_t& info);

// Returns the null-terminated pointers that execve wants; they point into `strings`.
std::vector<char*> pointers(const std::vector<std::string>& strings);

// The functions below are for a child process between fork() and execve(): they are
// async-signal-safe and allocate nothing.

// Resets all signals: none is ignored or blocked any more.
void restore_signals();

// Writes "muster: <what> <name>: <errno in words>" to standard error.
void say_failure(const char* what, const char* name, int error);

// Replaces the process by the program. On failure it prints the error and exits like a shell: 127
// if there is no such program, 126 if it cannot be run. `arguments` and `environment` end in a null
// pointer.
[[noreturn]] void execute(const char* program, char* const* arguments, char* const* environment);

}  // namespace muster
