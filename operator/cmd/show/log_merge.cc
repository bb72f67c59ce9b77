#include "operator/cmd/show/log_merge.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>

#include "common/error.h"
#include "common/system/file.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kDay = 24 * 3600;

std::optional<int64_t> clock_at(const std::string& line, size_t at) {
  int hours = 0, minutes = 0, seconds = 0, length = 0;
  if (at >= line.size()) return std::nullopt;
  const int read =
      std::sscanf(line.c_str() + at, "%2d:%2d:%2d%n", &hours, &minutes, &seconds, &length);
  if (read != 3 || length != 8 || hours < 0 || minutes < 0 || seconds < 0) return std::nullopt;
  return hours * 3600 + minutes * 60 + seconds;
}

std::optional<int64_t> day_at(const std::string& line, size_t at) {
  int year = 0, month = 0, day = 0, length = 0;
  if (at >= line.size()) return std::nullopt;
  const int read = std::sscanf(line.c_str() + at, "%4d-%2d-%2d%n", &year, &month, &day, &length);
  if (read != 3 || length != 10 || month < 1 || day < 1) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count();
}

// Returns where the date is in a line of ours, "--- worker-0 attempt 1, 2026-11-21 12:34:56 ---".
size_t date_position(const std::string& line) {
  if (!line.starts_with("--- ")) return 0;
  const size_t comma = line.rfind(", ");
  return comma == std::string::npos ? 0 : comma + 2;
}

bool is_wanted(const std::string& name, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return true;
  return std::ranges::any_of(wanted, [&](const std::string& one) { return means(one, name); });
}

}  // namespace

std::set<std::string> logged_names(const fs::path& folder) {
  std::set<std::string> names;
  if (!is_there(folder)) return names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".log") names.insert(entry.path().stem());
  }
  if (error) throw Unavailable("cannot list " + folder.string() + ": " + error.message());
  return names;
}

std::optional<int64_t> written(const LogLine& line) {
  if (line.second < 2 * kDay) return std::nullopt;
  std::tm wall{};
  const std::time_t as_if_utc{line.second};
  ::gmtime_r(&as_if_utc, &wall);
  wall.tm_isdst = -1;
  return std::mktime(&wall);
}

bool means(const std::string& asked, const std::string& replica) {
  return replica == asked || replica.substr(0, replica.rfind('-')) == asked;
}

void LogFile::skip() {
  std::error_code error;
  const uintmax_t size = fs::file_size(path_, error);
  if (!error) read_ = static_cast<int64_t>(size);
}

std::vector<LogLine> LogFile::read(bool even_unfinished) {
  std::ifstream file(path_, std::ios::binary);
  std::vector<LogLine> lines;
  if (!file.seekg(read_)) return lines;
  for (std::string line; std::getline(file, line);) {
    const bool finished = !file.eof();
    if (!finished && !even_unfinished) break;
    read_ += static_cast<int64_t>(line.size()) + (finished ? 1 : 0);
    place(line);
    lines.push_back({second_, std::move(line)});
  }
  return lines;
}

void LogFile::place(const std::string& line) {
  const size_t at = date_position(line);
  const std::optional<int64_t> day = day_at(line, at);
  const std::optional<int64_t> clock = clock_at(line, day ? at + 11 : at);
  if (!clock) return;
  if (day) day_ = *day;
  int64_t second = day_ * kDay + *clock;
  // A clock without a date begins anew at midnight; a smaller step back comes from another clock.
  if (!day && second < second_ - kDay / 2) second = ++day_ * kDay + *clock;
  second_ = std::max(second_, second);
}

void LogMerger::find_logs() {
  for (const std::string& name : logged_names(folder_)) {
    if (is_wanted(name, wanted_)) logs_.try_emplace(name, folder_ / (name + ".log"));
  }
}

std::set<std::string> LogMerger::names() const {
  std::set<std::string> names;
  for (const auto& [name, log] : logs_) names.insert(name);
  return names;
}

std::vector<MergedLine> LogMerger::read(int tail, bool even_unfinished) {
  find_logs();
  std::vector<MergedLine> merged;
  for (auto& [name, log] : logs_) {
    std::vector<LogLine> lines = log.read(even_unfinished);
    const auto count = static_cast<std::ptrdiff_t>(lines.size());
    const std::ptrdiff_t from = first_ && tail >= 0 ? std::max<std::ptrdiff_t>(count - tail, 0) : 0;
    for (std::ptrdiff_t i = from; i < count; ++i) merged.push_back({name, std::move(lines[i])});
  }
  first_ = false;
  std::ranges::stable_sort(merged, {}, [](const MergedLine& merged) { return merged.line.second; });
  return merged;
}

}  // namespace muster::cmd
