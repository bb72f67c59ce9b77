#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

namespace muster::images {

using Bytes = std::span<const std::byte>;

inline bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(), [](char expected, std::byte found) {
           return static_cast<std::byte>(expected) == found;
         });
}

}  // namespace muster::images
