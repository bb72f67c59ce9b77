#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>

namespace muster::cmd {

// A line of text as muster-trainer logs it: "12:34:56 warning mnist-chief-0: the message". The
// fields that may follow stay in the message. A line of the job's own log has a date before it, and
// as its name the reason of an event.
struct TextLogLine {
  std::string level, name, message;
};
std::optional<TextLogLine> parse_log_text(const std::string& line);

// Whether `out` may get colours: it is a terminal, and NO_COLOR (no-color.org) is not set.
bool takes_colour(FILE* out);

// Formats lines of replicas' logs in one way, whether they come from files or from a cluster.
//
// A line of text is "worker-1 | 12:34:56 info the message": JSON that a replica has logged becomes
// text, and the name in a logged line is left out where it is the replica's. Each role has its
// colour. A line of JSON is an object, for programs: it
// has "replica", and the fields of a logged line that is JSON, or as many of "time", "level",
// "name" and "message" as are known.
class LogPrinter {
 public:
  LogPrinter(bool json, bool coloured) : json_(json), coloured_(coloured) {}

  // Makes the column of names as wide as the longest known name.
  void know(const std::set<std::string>& names);

  // `seconds` is when the line was written, counted from 1970, if that is known.
  std::string line(const std::string& replica, const std::string& text,
                   std::optional<int64_t> seconds) const;

 private:
  const bool json_;
  const bool coloured_;
  size_t width_ = 0;
};

}  // namespace muster::cmd
