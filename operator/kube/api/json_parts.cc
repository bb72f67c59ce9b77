#include "operator/kube/api/json_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "common/error.h"

namespace muster::kube {

namespace {

constexpr const char* kBlanks = " \t\r\n";

// Returns the index after the string that begins with the quote at `at`; the size if it does not
// end.
size_t end_of_string(std::string_view json, size_t at) {
  for (++at; (at = json.find_first_of("\"\\", at)) < json.size(); at += 2) {
    if (json[at] == '"') return at + 1;
  }
  return json.size();
}

// Goes through the parts of a text.
class Reader {
 public:
  explicit Reader(std::string_view json) : json_(json) {}

  std::vector<JsonPart> read() {
    const char first = next();
    if (first != '{' && first != '[') fail("an object or a list");
    const char last = first == '{' ? '}' : ']';
    ++at_;
    std::vector<JsonPart> parts;
    while (next() != last) {
      if (!parts.empty()) take(',');
      JsonPart part;
      if (first == '{') part.key = key();
      part.text = value();
      parts.push_back(part);
    }
    ++at_;
    next();
    if (at_ < json_.size()) fail("nothing more");
    return parts;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Unavailable("expected " + expected + " at byte " + std::to_string(at_) + " of " +
                      std::to_string(json_.size()));
  }

  // Returns the next character that is no blank; 0 at the end.
  char next() {
    at_ = std::min(json_.find_first_not_of(kBlanks, at_), json_.size());
    return at_ < json_.size() ? json_[at_] : '\0';
  }

  void take(char wanted) {
    if (next() != wanted) fail({'\'', wanted, '\''});
    ++at_;
  }

  std::string_view key() {
    take('"');
    const size_t begin = at_;
    at_ = end_of_string(json_, at_ - 1);
    const std::string_view name = json_.substr(begin, at_ - begin - 1);
    take(':');
    return name;
  }

  // Reads up to the first comma or bracket that does not belong to the value.
  std::string_view value() {
    next();
    const size_t begin = at_;
    for (int depth = 0; at_ < json_.size();) {
      const char letter = json_[at_];
      const bool closes = letter == '}' || letter == ']';
      if (depth == 0 && (closes || letter == ',')) break;
      if (letter == '{' || letter == '[') ++depth;
      if (closes) --depth;
      at_ = letter == '"' ? end_of_string(json_, at_) : at_ + 1;
    }
    const std::string_view text = json_.substr(begin, at_ - begin);
    if (text.empty()) fail("a value");
    return text.substr(0, text.find_last_not_of(kBlanks) + 1);
  }

  const std::string_view json_;
  size_t at_ = 0;
};

bool is_of_number(char letter) {
  return (letter >= '0' && letter <= '9') || letter == '-' || letter == '+' || letter == '.' ||
         letter == 'e' || letter == 'E';
}

template <class Integer>
bool holds(std::string_view number) {
  Integer value;
  return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc();
}

bool is_large_integer(std::string_view number) {
  return number.find_first_of(".eE") == std::string_view::npos && !holds<int64_t>(number) &&
         !holds<uint64_t>(number);
}

}  // namespace

std::vector<JsonPart> parts_of(std::string_view json) {
  return Reader(json).read();
}

std::string with_large_integers_as_doubles(std::string_view json) {
  std::string text;
  for (size_t at = 0, end = 0; at < json.size(); at = end) {
    end = at + 1;
    if (json[at] == '"') {
      end = end_of_string(json, at);
    } else if (is_of_number(json[at])) {
      while (end < json.size() && is_of_number(json[end])) ++end;
    }
    const std::string_view piece = json.substr(at, end - at);
    text += piece;
    if (is_of_number(json[at]) && is_large_integer(piece)) text += "e0";
  }
  return text;
}

}  // namespace muster::kube
