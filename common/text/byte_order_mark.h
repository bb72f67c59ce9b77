#pragma once

#include <string_view>

namespace muster {

// Returns the text without a leading byte-order mark of UTF-8, which editors of other systems may
// write.
inline std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

}  // namespace muster
