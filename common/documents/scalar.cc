#include "common/documents/scalar.h"

#include <charconv>
#include <cmath>
#include <utility>

namespace muster {

namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

size_t skip_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool is_number(std::string_view text, bool& integral) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const size_t whole = skip_digits(text, at) - at;
  at += whole;
  integral = at == text.size();
  if (at < text.size() && text[at] == '.') {
    const size_t fraction = skip_digits(text, at + 1) - (at + 1);
    if (whole == 0 && fraction == 0) return false;
    at += 1 + fraction;
  } else if (whole == 0) {
    return false;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
    const size_t end = skip_digits(text, at);
    if (end == at) return false;
    at = end;
  }
  return at == text.size();
}

// Returns null if not even a float can hold the integer.
Json integer(std::string_view digits, int base) {
  const char* end = digits.data() + digits.size();
  int64_t value = 0;
  if (auto [at, error] = std::from_chars(digits.data(), end, value, base);
      error == std::errc() && at == end) {
    return value;
  }
  uint64_t large = 0;
  if (auto [at, error] = std::from_chars(digits.data(), end, large, base);
      error == std::errc() && at == end) {
    return large;
  }
  double huge = 0;
  if (base == 10) {
    const auto result = std::from_chars(digits.data(), end, huge);
    return result.ec == std::errc() ? Json(huge) : Json();
  }
  for (const char c : digits) huge = huge * base + (is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  return std::isfinite(huge) ? Json(huge) : Json();
}

// Returns the digits of 0x1f or 0o17, and their base; 0 for other text.
std::pair<std::string_view, int> based_digits(std::string_view text) {
  if (text.size() < 3 || text[0] != '0' || (text[1] != 'x' && text[1] != 'o')) return {text, 0};
  const bool hex = text[1] == 'x';
  const std::string_view digits = text.substr(2);
  if (digits.find_first_not_of(hex ? "0123456789abcdefABCDEF" : "01234567") != digits.npos) {
    return {text, 0};
  }
  return {digits, hex ? 16 : 8};
}

bool is_not_finite(const std::string& text) {
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
  const std::string unsigned_text =
      text.empty() || (text[0] != '-' && text[0] != '+') ? text : text.substr(1);
  return unsigned_text == ".inf" || unsigned_text == ".Inf" || unsigned_text == ".INF";
}

// Returns the text itself if it is no number; null for a number that JSON cannot represent.
Json number(const std::string& text) {
  if (is_not_finite(text)) return nullptr;
  if (const auto [digits, base] = based_digits(text); base != 0) return integer(digits, base);
  bool integral = false;
  if (!is_number(text, integral)) return text;
  const std::string_view digits = std::string_view(text).substr(text[0] == '+' ? 1 : 0);
  if (integral) return integer(digits, 10);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  // A result out of range is too large or too small; a number that is too small is as good as zero.
  if (error == std::errc::result_out_of_range) value = std::strtod(text.c_str(), nullptr);
  if (!std::isfinite(value)) return nullptr;
  return value;
}

}  // namespace

Json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return nullptr;
  }
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  Json value = number(text);
  return value.is_null() ? Json(text) : value;
}

bool is_beyond_numbers(const std::string& text) {
  return number(text).is_null();
}

size_t find_bad_text(std::string_view text) {
  size_t at = 0;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  while (at < text.size()) {
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
      if ((lead < 0x20 && lead != '\t' && lead != '\n' && lead != '\r') || lead == 0x7f) return at;
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

}  // namespace muster
