#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/documents/document.h"

namespace muster {

// Functions that read unchecked JSON. None of them throws.

// The bounds of a text from any source. A text that is nested deeper would overflow the stack,
// because copying and dumping a value recurse. An object with more members would keep its reader
// busy for a long time, because Json searches members one by one.
class JsonBounds {
 public:
  static constexpr size_t kMostLevels = 64;
  static constexpr size_t kMostMembers = 10'000;
  // Has the parameters of Json::parse's callback. Returns false once a bound is exceeded.
  bool take(int depth, Json::parse_event_t event);
  bool exceeded() const { return exceeded_; }

 private:
  bool exceeded_ = false;
  std::array<size_t, kMostLevels> members_{};  // number of members of the open object at each level
};

// Parses a text from any source. Returns null if the text is no JSON or exceeds JsonBounds.
Json parse_or_null(std::string_view text);

// Returns value[key], or null if `value` is not an object or has no such member. Calls can be
// nested.
const Json& member(const Json& value, std::string_view key);

// Returns whether `value` is an object that has this member, and the member is not null.
bool given(const Json& value, std::string_view key);

// Returns value[key] if it has the requested type, else `fallback`. Integral numbers count as
// integers, but not those outside int64.
std::string string_or(const Json& value, std::string_view key, std::string fallback);
int64_t integer_or(const Json& value, std::string_view key, int64_t fallback);
double number_or(const Json& value, std::string_view key, double fallback);
bool bool_or(const Json& value, std::string_view key, bool fallback);

// Returns the strings in a list, without its other entries; none if `list` is not a list.
std::vector<std::string> strings_in(const Json& list);

}  // namespace muster
