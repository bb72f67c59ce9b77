#pragma once

#include <cstddef>
#include <string>

namespace muster {

// The largest part of a checkpoint request, in bytes, that is used. Anybody may write the text of a
// request.
inline constexpr size_t kLongestRequest = 1024;

// Returns the first kLongestRequest bytes of the text, without a cut UTF-8 character at the end.
std::string counted_request(std::string text);

}  // namespace muster
