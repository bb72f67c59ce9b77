#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace muster {

// Texts about a program's command line, made from its definition alone: its commands (one level)
// with their options, the values that an option may have, and what --help says about each. Hidden
// commands and options are left out.

// Returns a script for bash that completes the program's command lines, for `source <(program
// completion bash)`. For a command that hands its words to another program the script asks that
// program's --help.
std::string bash_completion(const CLI::App& app);

// Returns the program's man page of section 1, for `man -l` and groff. Precondition: the program
// has a name.
std::string man_page(const CLI::App& app, const std::string& version);

}  // namespace muster
