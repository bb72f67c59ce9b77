#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace muster::checkpoint {

// "<seconds since 1970>-<random>": unique among writers, and tells the age of what a dead writer
// left behind without asking a file server for its clock.
std::string unique_name();

// When unique_name() made this; nothing for any other text.
std::optional<std::chrono::system_clock::time_point> time_of(std::string_view unique_name);

}  // namespace muster::checkpoint
