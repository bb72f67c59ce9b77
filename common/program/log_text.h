#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::log {

// Converts a JSON line of log.h into the text line that log.h would have written, with the time in
// this machine's time zone and without a newline. Returns nothing for any other line, for example a
// line of another program, which has no "name".
std::optional<std::string> as_text(std::string_view line);

}  // namespace muster::log
