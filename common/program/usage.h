#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns "expected one of the commands run, stop, found "rnu"; did you mean run?" for the first
// surplus word of a command line, unless it is an option; "" if there is no surplus word.
std::string unknown_command(const std::vector<std::string>& words,
                            const std::vector<std::string>& commands);

}  // namespace muster
