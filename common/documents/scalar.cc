#include "common/documents/scalar.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

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
bool is_decimal(std::string_view text) {
  size_t at = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  const size_t whole = skip_digits(text, at) - at;
  at += whole;
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

// Removes the base that the digits begin with (0x1f, 0o17, 017, 0b1), and returns it.
int take_base(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  switch (digits[1]) {
    case 'x':
    case 'X':
      digits.remove_prefix(2);
      return 16;
    case 'o':
    case 'O':
      digits.remove_prefix(2);
      return 8;
    case 'b':
    case 'B':
      digits.remove_prefix(2);
      return 2;
    default:
      digits.remove_prefix(1);
      return 8;
  }
}

// Returns a whole number within int64; for a number that only fits uint64 the nearest float64, like
// kubectl's JSON reader; null for any other text.
Json whole_number(std::string_view text) {
  const bool is_signed = text[0] == '-' || text[0] == '+';
  const bool negative = text[0] == '-';
  text.remove_prefix(is_signed ? 1 : 0);
  const int base = take_base(text);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return nullptr;
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  if (negative) return value <= kLimit ? Json(static_cast<int64_t>(~value + 1)) : Json();
  if (value < kLimit) return static_cast<int64_t>(value);
  return is_signed ? Json() : Json(static_cast<double>(value));
}

// Go's strconv.ParseFloat takes underscores only between digits.
bool parts_digits(std::string_view text) {
  for (size_t at = text.find('_'); at != text.npos; at = text.find('_', at + 1)) {
    if (!is_digit(text[at - 1]) || at + 1 == text.size() || !is_digit(text[at + 1])) return false;
  }
  return true;
}

// Precondition: is_decimal(text). Returns an infinity for a number that is too large.
double decimal(std::string_view text) {
  if (text[0] == '+') text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A number that is too small is zero.
  if (error == std::errc::result_out_of_range)
    value = std::strtod(std::string(text).c_str(), nullptr);
  return value;
}

// JSON has one kind of number: kubectl sends 1.0 and 1e3 as 1 and 1000.
Json as_json(double value) {
  constexpr double kLimit = 9223372036854775808.0;
  const bool is_whole = value == std::trunc(value) && value >= -kLimit && value < kLimit;
  return is_whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

bool begins_as_number(std::string_view text) {
  return !text.empty() && (is_digit(text[0]) || text[0] == '-' || text[0] == '+' || text[0] == '.');
}

// Returns the text itself if it is not a number within float64.
Json number(const std::string& text) {
  if (!begins_as_number(text) || (text[0] == '.' && !parts_digits(text))) return text;
  std::string plain = text;
  std::erase(plain, '_');
  if (Json whole = whole_number(plain); !whole.is_null()) return whole;
  if (!is_decimal(plain)) return text;
  const double value = decimal(plain);
  return std::isfinite(value) ? as_json(value) : Json(text);
}

using Words = std::span<const std::string_view>;

bool is_in(const std::string& text, Words words) {
  return std::ranges::find(words, text) != words.end();
}

constexpr std::string_view kNull[] = {"", "~", "null", "Null", "NULL"};
constexpr std::string_view kTrue[] = {"y",    "Y",    "yes", "Yes", "YES", "true",
                                      "True", "TRUE", "on",  "On",  "ON"};
constexpr std::string_view kFalse[] = {"n",     "N",     "no",  "No",  "NO", "false",
                                       "False", "FALSE", "off", "Off", "OFF"};
constexpr std::string_view kNotFinite[] = {".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
                                           "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};

}  // namespace

Json plain_scalar(const std::string& text) {
  if (is_in(text, kNull)) return nullptr;
  if (is_in(text, kTrue)) return true;
  if (is_in(text, kFalse)) return false;
  if (is_in(text, kNotFinite)) throw Invalid(text + ", which JSON does not have");
  return number(text);
}

bool is_beyond_numbers(const std::string& text) {
  return begins_as_number(text) && is_decimal(text) && !std::isfinite(decimal(text));
}

}  // namespace muster
