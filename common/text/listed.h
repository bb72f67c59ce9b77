#pragma once

#include <string>
#include <vector>

namespace muster {

// Returns at most `most` of the names, "a, b and 3 more", for a message.
std::string listed(const std::vector<std::string>& names, size_t most);

}  // namespace muster
