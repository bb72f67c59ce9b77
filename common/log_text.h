#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::log {

// A line of JSON as log.h writes it as the line of text that it would have been, without its
// newline, and with the time as this machine's clock shows it; nothing for any other line.
std::optional<std::string> as_text(std::string_view line);

}  // namespace muster::log
