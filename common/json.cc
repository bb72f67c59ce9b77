#include "common/json.h"

#include <limits>
#include <utility>

namespace muster {

const Json& member(const Json& value, std::string_view key) {
  static const Json null;
  if (!value.is_object()) return null;
  const auto found = value.find(std::string(key));
  return found == value.end() ? null : *found;
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

}  // namespace muster
