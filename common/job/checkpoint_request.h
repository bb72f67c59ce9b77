#pragma once

#include <cstddef>
#include <string>

namespace muster {

// The bytes of a request for a checkpoint that count; the request is a text of anybody's.
inline constexpr size_t kLongestRequest = 1024;

// Returns what counts of the text, as far as it is whole characters of UTF-8.
std::string counted_request(std::string text);

}  // namespace muster
