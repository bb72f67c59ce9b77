#pragma once

#include <string>

namespace muster {

// Returns the word quoted for a POSIX shell, if it needs quotes.
std::string shell_word(const std::string& word);

}  // namespace muster
