#pragma once

#include <string>
#include <string_view>

#include "common/documents/document.h"

namespace muster {

// Returns a plain scalar with its type in YAML 1.2's core schema (section 10.3.2). Integers of more
// than 64 bits become the nearest float; numbers that JSON cannot represent (.inf, .nan, 1e999)
// stay text.
Json plain_scalar(const std::string& text);

// Whether `text` is a number that JSON cannot represent.
bool is_beyond_numbers(const std::string& text);

// Checks that `text` is well-formed UTF-8 without control characters other than tab and line ends.
// Returns the offset of the first byte that is not, or npos.
size_t find_bad_text(std::string_view text);

}  // namespace muster
