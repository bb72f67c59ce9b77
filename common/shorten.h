#pragma once

#include <string>

namespace muster {

// The last place in `text`, not after `at`, that is within no UTF-8 character.
size_t character_border(const std::string& text, size_t at);

// A text of at most `most` bytes (at least 16). A longer one is cut in its middle, where " ... "
// takes the place of what is left out: its beginning says what it is about, and its end is often
// the cause. No UTF-8 character is cut in two.
std::string shorten(const std::string& text, size_t most);

}  // namespace muster
