#pragma once

#include <string>
#include <vector>

namespace muster {

// "expected one of the commands run, stop, found "rnu"; did you mean run?" for the first of the
// words that a command line has too many, unless it is an option; "" where there is none.
std::string unknown_command(const std::vector<std::string>& words,
                            const std::vector<std::string>& commands);

}  // namespace muster
