#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster {

// Returns the offset of the first byte that is not part of a character in well-formed UTF-8; npos
// if there is none.
size_t find_bad_utf8(std::string_view text);

// The first place of a text that is not UTF-8.
struct OtherEncoding {
  size_t line = 1;
  std::string found;  // what is there, in which encoding it may be, and what to do
};
// Returns nothing for a text in UTF-8, with or without a byte-order mark.
std::optional<OtherEncoding> find_other_encoding(std::string_view text);

// Throws Invalid naming `name`, the line, and what was found, if `text` is not UTF-8.
void require_utf8(std::string_view text, const std::string& name);

}  // namespace muster
