#pragma once

#include <string>

namespace muster {

// Returns the last offset in `text`, not after `at`, that lies within no UTF-8 character.
size_t character_border(const std::string& text, size_t at);

// Returns a text of at most `most` bytes (at least 16). A longer one is cut in its middle, and "
// ... " stands for what is left out: its beginning says what it is about, and its end is often the
// cause. No UTF-8 character is cut in two.
std::string shorten(const std::string& text, size_t most);

// Returns the last line of `text` that is not blank, without blanks after it; "" if there is none.
std::string last_line(const std::string& text);

}  // namespace muster
