#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace muster::checkpoint {

// Returns "<seconds since 1970>-<random>". The name is unique among writers, and shows the age of a
// dead writer's leftovers without the clock of a file server.
std::string unique_name();

// Returns the time at which unique_name() made this name; nothing for any other text.
std::optional<std::chrono::system_clock::time_point> time_of(std::string_view unique_name);

}  // namespace muster::checkpoint
