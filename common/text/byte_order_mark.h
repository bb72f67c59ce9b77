#pragma once

#include <string_view>

namespace muster {

// Returns the text behind a byte-order mark of UTF-8, if it begins with one, as editors of other
// systems write it.
inline std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

}  // namespace muster
