#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>

namespace muster::cmd {

// A line of text as muster-trainer logs it: "12:34:56 warning mnist-chief-0: the message". Fields
// after the message stay in the message. A line of the job's own log begins with a date, and its
// name is the reason of an event.
struct TextLogLine {
  std::string level, name, message;
};
std::optional<TextLogLine> parse_log_text(const std::string& line);

// Whether `out` may get colours: it is a terminal, and NO_COLOR (no-color.org) is not set.
bool takes_colour(FILE* out);

// Formats lines of replicas' logs; lines from files and from a cluster look the same.
//
// A line of text is "worker-1 | 12:34:56 info the message": a line that a replica has logged as
// JSON becomes text, and the name in a line is left out if it is the replica's. Each role has a
// colour. A line of JSON, for programs, is an object with "replica" and the fields of the logged
// line if that is JSON, or else as many of "time", "level", "name" and "message" as are known.
class LogPrinter {
 public:
  LogPrinter(bool json, bool coloured) : json_(json), coloured_(coloured) {}

  // Makes the column of names as wide as the longest known name.
  void know(const std::set<std::string>& names);

  // `seconds` is the time of the line in seconds since 1970, if known.
  std::string line(const std::string& replica, const std::string& text,
                   std::optional<int64_t> seconds) const;

 private:
  const bool json_;
  const bool coloured_;
  size_t width_ = 0;
};

}  // namespace muster::cmd
