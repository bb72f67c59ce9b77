#pragma once

#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace muster {

// Texts about a program's command line, made from its definition alone: its commands (one level)
// with their options, the values that an option may have, and what --help says about each. Hidden
// commands and options are left out.

// Returns the names of the shells that completion_script() knows.
std::vector<std::string> shells();

// Returns a script for one of shells() that completes the program's command lines, for `source
// <(program completion bash)`. For a command that passes its arguments to another program, the
// script uses that program's --help.
std::string completion_script(const CLI::App& app, const std::string& shell);

// Returns the program's man page of section 1, for `man -l` and groff. Precondition: the program
// has a name.
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace muster
