#include "common/text/utf8.h"

#include <algorithm>

#include "common/error.h"

namespace muster {

namespace {

constexpr const char* kAdvice = "; save the file as UTF-8";

// Returns by what a text is recognized as UTF-16; null for any other text.
const char* sign_of_utf16(std::string_view text) {
  if (text.starts_with("\xff\xfe")) return "as its first bytes FF FE say";
  if (text.starts_with("\xfe\xff")) return "as its first bytes FE FF say";
  if (text.size() < 4) return nullptr;
  const auto is_zero = [&](size_t at) { return text[at] == '\0'; };
  const bool is_wide =
      is_zero(0) == is_zero(2) && is_zero(1) == is_zero(3) && is_zero(0) != is_zero(1);
  return is_wide ? "as the zero in each of its first characters says" : nullptr;
}

}  // namespace

size_t find_bad_utf8(std::string_view text) {
  size_t at = 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  while (at < text.size()) {
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return at;
    for (size_t i = 1; i < length; ++i) {
      if ((byte(at + i) & 0xc0) != 0x80) return at;
    }
    const unsigned char second = byte(at + 1);
    const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
    const bool outside = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
    if (overlong || outside) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::optional<OtherEncoding> find_other_encoding(std::string_view text) {
  if (const char* sign = sign_of_utf16(text))
    return OtherEncoding{1, std::string("UTF-16, ") + sign + kAdvice};
  const size_t bad = find_bad_utf8(text);
  if (bad == std::string_view::npos) return std::nullopt;
  const auto lines = std::ranges::count(text.substr(0, bad), '\n');
  const int byte = static_cast<unsigned char>(text[bad]);
  return OtherEncoding{static_cast<size_t>(lines) + 1,
                       "the byte " + std::to_string(byte) + " at offset " + std::to_string(bad) +
                           ", which may be Latin-1 or Windows-1252" + kAdvice};
}

void require_utf8(std::string_view text, const std::string& name) {
  if (const auto other = find_other_encoding(text))
    throw Invalid(name + ": line " + std::to_string(other->line) +
                  ": expected text in UTF-8, found " + other->found);
}

}  // namespace muster
