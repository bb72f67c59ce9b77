#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "common/documents/document.h"

namespace muster {

// Functions that read JSON which may be unchecked: none of them throws.

// The bounds of a text from any source. One that is nested deeper would overflow the stack, because
// copying and dumping a value recurse. An object with more members would keep its reader busy for
// long, because Json looks for a member from the first one on.
class JsonBounds {
 public:
  static constexpr size_t kMostLevels = 64;
  static constexpr size_t kMostMembers = 10'000;
  // Takes what Json::parse calls its callback with. Returns false once a bound is exceeded.
  bool take(int depth, Json::parse_event_t event);
  bool exceeded() const { return exceeded_; }

 private:
  bool exceeded_ = false;
  std::array<size_t, kMostLevels> members_{};  // of the object that is open at each level
};

// Parses a text from any source. Returns null if the text is no JSON or exceeds JsonBounds.
Json parse_or_null(std::string_view text);

// Returns value[key], or null where `value` is no object or has no such member; calls can be
// nested.
const Json& member(const Json& value, std::string_view key);

// Returns whether `value` is an object that has this member, and the member is not null.
bool given(const Json& value, std::string_view key);

// Returns value[key] if it is of the kind asked for, else `fallback`. Integral numbers count as
// integers, but not those outside int64.
std::string string_or(const Json& value, std::string_view key, std::string fallback);
int64_t integer_or(const Json& value, std::string_view key, int64_t fallback);
double number_or(const Json& value, std::string_view key, double fallback);
bool bool_or(const Json& value, std::string_view key, bool fallback);

// Returns the strings of a list; nothing else that is in it, and none where `list` is no list.
std::vector<std::string> strings_in(const Json& list);

}  // namespace muster
