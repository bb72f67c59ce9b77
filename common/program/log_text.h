#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::log {

// Turns a line of JSON that log.h has written into the line of text that log.h would have written
// instead, with the time in this machine's time zone and without a newline. Returns nothing for any
// other line: for example, one of another program, which has no "name".
std::optional<std::string> as_text(std::string_view line);

}  // namespace muster::log
