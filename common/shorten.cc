#include "common/shorten.h"

#include <string_view>

namespace muster {

namespace {

constexpr std::string_view kGap = " ... ";

// Within a UTF-8 character, not at the first of its bytes.
bool is_inside(const std::string& text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

}  // namespace

std::string shorten(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t kept = most - kGap.size();
  size_t head = kept / 2;
  size_t tail = text.size() - (kept - head);
  // A character has at most four bytes: what goes on for longer is no UTF-8.
  for (int i = 0; i < 3 && head > 0 && is_inside(text, head); ++i) --head;
  for (int i = 0; i < 3 && is_inside(text, tail); ++i) ++tail;
  return text.substr(0, head).append(kGap).append(text, tail);
}

}  // namespace muster
