#include "common/documents/json.h"

#include <algorithm>
#include <limits>
#include <utility>

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace muster {

bool JsonBounds::take(int depth, Json::parse_event_t event) {
  using Event = Json::parse_event_t;
  const auto level = static_cast<size_t>(std::max(depth, 0));
  const bool opens = event == Event::object_start || event == Event::array_start;
  exceeded_ = exceeded_ || (opens && level >= kMostLevels);
  if (exceeded_) return false;
  if (event == Event::object_start) members_[level] = 0;
  if (event == Event::key) exceeded_ = ++members_[level - 1] > kMostMembers;
  return !exceeded_;
}

Json parse_or_null(std::string_view text) {
  JsonBounds bounds;
  Json value = Json::parse(
      text, [&](int depth, Json::parse_event_t event, Json&) { return bounds.take(depth, event); },
      /*allow_exceptions=*/false);
  return bounds.exceeded() || value.is_discarded() ? Json() : value;
}

const Json& member(const Json& value, std::string_view key) {
  static const Json null;
  if (!value.is_object()) return null;
  const auto found = value.find(std::string(key));
  return found == value.end() ? null : *found;
}

bool given(const Json& value, std::string_view key) {
  return !member(value, key).is_null();
}

std::string string_or(const Json& value, std::string_view key, std::string fallback) {
  const Json& found = member(value, key);
  return found.is_string() ? found.get<std::string>() : std::move(fallback);
}

int64_t integer_or(const Json& value, std::string_view key, int64_t fallback) {
  const Json& found = member(value, key);
  if (found.is_number_unsigned()) {
    const uint64_t number = found.get<uint64_t>();
    constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    return number <= kMax ? static_cast<int64_t>(number) : fallback;
  }
  return found.is_number_integer() ? found.get<int64_t>() : fallback;
}

double number_or(const Json& value, std::string_view key, double fallback) {
  const Json& found = member(value, key);
  return found.is_number() ? found.get<double>() : fallback;
}

bool bool_or(const Json& value, std::string_view key, bool fallback) {
  const Json& found = member(value, key);
  return found.is_boolean() ? found.get<bool>() : fallback;
}

std::vector<std::string> strings_in(const Json& list) {
  std::vector<std::string> result;
  if (!list.is_array()) return result;
  for (const Json& item : list) {
    if (item.is_string()) result.push_back(item.get<std::string>());
  }
  return result;
}

}  // namespace muster
