#include "operator/cmd/show/log_printer.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "common/documents/json.h"
#include "common/environment.h"
#include "common/program/log_text.h"

namespace muster::cmd {

namespace {

// The ANSI code of the replica's colour: each role has its own, the same in every job.
int colour_of(const std::string& replica) {
  const std::string role = replica.substr(0, replica.rfind('-'));
  if (role == "chief" || role == "master") return 36;
  if (role == "worker") return 32;
  if (role == "ps") return 33;
  if (role == "evaluator") return 35;
  return 34;  // the job's own log
}

// Returns the logged line `text` without its name, if this is the name of `replica`.
std::string without_name(std::string text, const std::string& replica) {
  const auto parsed = parse_log_text(text);
  if (parsed && ("-" + parsed->name).ends_with("-" + replica)) {
    const std::string named = parsed->name + ": ";
    text.erase(text.find(" " + named) + 1, named.size());
  }
  return text;
}

std::string json_line(const std::string& replica, const std::string& text,
                      std::optional<int64_t> seconds) {
  Json line = {{"replica", replica}};
  const Json logged = parse_or_null(text);
  if (logged.is_object()) {
    for (const auto& [name, value] : logged.items()) {
      if (name != "replica") line[name] = value;
    }
  } else {
    if (seconds) {
      line["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t{*seconds}));
    }
    const auto parsed = parse_log_text(text);
    if (parsed) line["level"] = parsed->level;
    if (parsed && !parsed->name.empty()) line["name"] = parsed->name;
    line["message"] = parsed ? parsed->message : text;
  }
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::optional<TextLogLine> parse_log_text(const std::string& whole) {
  constexpr std::string_view kDate = "0000-00-00 ";
  const bool dated = whole.size() > kDate.size() && whole[4] == '-' && whole[7] == '-';
  const std::string line = whole.substr(dated ? kDate.size() : 0);
  constexpr std::string_view kClock = "00:00:00 ";
  if (line.size() < kClock.size() || line[2] != ':' || line[5] != ':' || line[8] != ' ') {
    return std::nullopt;
  }
  TextLogLine parsed;
  const size_t space = line.find(' ', kClock.size());
  parsed.level = line.substr(kClock.size(), space - kClock.size());
  const char* const kLevels[] = {"debug", "info", "warning", "error"};
  if (space == std::string::npos || std::ranges::find(kLevels, parsed.level) == std::end(kLevels)) {
    return std::nullopt;
  }
  const size_t begin = space + 1, colon = line.find(": ", begin);
  const bool named = colon != std::string::npos;
  if (named) parsed.name = line.substr(begin, colon - begin);
  parsed.message = line.substr(named ? colon + 2 : begin);
  return parsed;
}

bool takes_colour(FILE* out) {
  return ::isatty(::fileno(out)) == 1 && environment_variable("NO_COLOR").empty();
}

void LogPrinter::know(const std::set<std::string>& names) {
  for (const std::string& name : names) width_ = std::max(width_, name.size());
}

std::string LogPrinter::line(const std::string& replica, const std::string& text,
                             std::optional<int64_t> seconds) const {
  if (json_) return json_line(replica, text, seconds);
  const std::string prefix = fmt::format("{:<{}} |", replica, width_);
  const std::string shown = without_name(log::as_text(text).value_or(text), replica);
  if (!coloured_) return prefix + " " + shown;
  return fmt::format("\x1b[{}m{}\x1b[0m {}", colour_of(replica), prefix, shown);
}

}  // namespace muster::cmd
