#pragma once

#include <signal.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace muster {

// Where execve would find `command`, looked up in `path` (as $PATH) unless it holds a slash, when
// `directory` is what it is relative to. Nothing if there is no executable file.
std::optional<std::filesystem::path> find_executable(const std::string& command,
                                                     const std::string& path,
                                                     const std::filesystem::path& directory);

// The exit code of a child that waitid() reported: its own, or 128 + n for signal n.
int exit_code_of(const siginfo_t& info);

// As execve wants them; they point into `strings`.
std::vector<char*> pointers(const std::vector<std::string>& strings);

// The rest is for a child between fork() and execve(): async-signal-safe, no memory is asked for.

// No signal is ignored or blocked.
void restore_signals();

// "muster: <what> <name>: <errno in words>" on standard error.
void say_failure(const char* what, const char* name, int error);

// Becomes the program; where that fails, says so and ends as a shell would: 127 if there is none,
// 126 if it cannot be run. Both end in a null pointer.
[[noreturn]] void execute(const char* program, char* const* arguments, char* const* environment);

}  // namespace muster
