#include "common/text/shorten.h"

#include <string_view>

namespace muster {

namespace {

constexpr std::string_view kGap = " ... ";

// Whether the byte at `at` is within a UTF-8 character and not its first byte.
bool is_inside(const std::string& text, size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

}  // namespace

// A UTF-8 character has at most four bytes: no cut moves by more than three.
size_t character_border(const std::string& text, size_t at) {
  for (int i = 0; i < 3 && at > 0 && is_inside(text, at); ++i) --at;
  return at;
}

std::string shorten(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t kept = most - kGap.size();
  const size_t head = character_border(text, kept / 2);
  size_t tail = text.size() - (kept - kept / 2);
  for (int i = 0; i < 3 && is_inside(text, tail); ++i) ++tail;
  return text.substr(0, head).append(kGap).append(text, tail);
}

std::string last_line(const std::string& text) {
  const size_t last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos) return "";
  const size_t before = text.rfind('\n', last);
  return text.substr(before + 1, last - before);
}

}  // namespace muster
