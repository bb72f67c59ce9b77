#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace muster {

// Returns "expected one of the commands run, stop, found "rnu"; did you mean run?" for the first
// surplus word of a command line, unless it is an option; "" if there is no surplus word.
std::string unknown_command(const std::vector<std::string>& words,
                            const std::vector<std::string>& commands);

// Returns the same for the word that made `app` throw a ParseError, if it is the name of no command
// or of no option of the command; "" for any other error.
std::string unknown_word(const CLI::App& app);

}  // namespace muster
