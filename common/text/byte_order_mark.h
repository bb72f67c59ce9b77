#pragma once

#include <string_view>

namespace muster {

// Returns the text after the byte-order mark of UTF-8, if it begins with one, as files of some
// editors and spreadsheets do.
inline std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace muster
