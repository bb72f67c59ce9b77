#pragma once

#include <charconv>
#include <concepts>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace muster {

// Returns the number if the whole text is a decimal number from `least` to `most`; nothing for any
// other text.
template <std::integral Number>
std::optional<Number> whole_number(std::string_view text,
                                   Number least = std::numeric_limits<Number>::min(),
                                   Number most = std::numeric_limits<Number>::max()) {
  Number number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end || number < least || number > most) return std::nullopt;
  return number;
}

}  // namespace muster
