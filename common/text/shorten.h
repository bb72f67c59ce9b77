#pragma once

#include <string>

namespace muster {

// Returns the last offset in `text`, at or before `at`, that is not inside a UTF-8 character.
size_t character_border(const std::string& text, size_t at);

// Returns a text of at most `most` bytes (at least 16). In a longer text " ... " replaces the
// middle, because the beginning of a message names its subject and the end is often the cause. No
// UTF-8 character is cut in two.
std::string shorten(const std::string& text, size_t most);

// Returns the last line of `text` that is not blank, without blanks after it; "" if there is none.
std::string last_line(const std::string& text);

}  // namespace muster
