#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <set>
#include <string>

namespace muster::cmd {

// A line of text as muster-trainer logs it: "12:34:56 warning mnist-chief-0: the message". The
// fields that it may end with stay in the message. The same with a date before it, as the job's own
// log has it, whose names are reasons of events.
struct TextLogLine {
  std::string level, name, message;
};
std::optional<TextLogLine> parse_log_text(const std::string& line);

// Whether what is written there may have colours: to a terminal, unless NO_COLOR (no-color.org) is
// set.
bool takes_colour(FILE* out);

// Shows lines of replicas' logs in one way, whether they come from files or from a cluster.
//
// Text: "worker-1 | 12:34:56 info mnist-worker-1: the message"; what a replica has logged as JSON
// becomes text, and each role has its colour. JSON: an object a line, for programs: "replica", and
// the fields of a line that is JSON, or as many of "time", "level", "name" and "message" as are
// known.
class LogPrinter {
 public:
  LogPrinter(bool json, bool coloured) : json_(json), coloured_(coloured) {}

  // Names of replicas fill the width of the longest that is known.
  void know(const std::set<std::string>& names);

  // `seconds` since 1970: when it was written, where that is known.
  std::string line(const std::string& replica, const std::string& text,
                   std::optional<int64_t> seconds) const;

 private:
  const bool json_;
  const bool coloured_;
  size_t width_ = 0;
};

}  // namespace muster::cmd
