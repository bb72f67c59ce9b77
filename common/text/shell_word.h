#pragma once

#include <string>

namespace muster {

// Returns the word as a POSIX shell reads it back: quoted where that is needed.
std::string shell_word(const std::string& word);

}  // namespace muster
