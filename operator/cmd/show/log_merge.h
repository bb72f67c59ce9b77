#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::cmd {

struct LogLine {
  int64_t second;  // wall clock; never earlier than the line before
  std::string text;
};

// A log that grows. The time of a line is read from its beginning: "12:34:56", or "2026-11-21
// 12:34:56", also within a line of ours that begins with "--- "; a line without a time belongs to
// the line before it.
class LogFile {
 public:
  explicit LogFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Skips what has been written so far.
  void skip();
  // Returns the whole lines since the last call; with `even_unfinished`, also a last line without
  // its end.
  std::vector<LogLine> read(bool even_unfinished);

 private:
  void place(const std::string& line);

  std::filesystem::path path_;
  int64_t read_ = 0;
  int64_t day_ = 0;  // days since 1970
  int64_t second_ = 0;
};

// Returns the names of the logs in `folder`: replicas, and "muster" for the job's own log. None if
// there is no such folder; throws Unavailable if it cannot be read.
std::set<std::string> logged_names(const std::filesystem::path& folder);

// Returns when a line was written, in seconds since 1970; nothing if its log has no date.
std::optional<int64_t> written(const LogLine& line);

// Whether `asked`, a replica ("worker-1") or a role ("worker"), means `replica`.
bool means(const std::string& asked, const std::string& replica);

struct MergedLine {
  std::string replica;
  LogLine line;
};

// Merges several logs into one, in the order of time.
class LogMerger {
 public:
  // Reads the logs in `folder`; with `wanted`, only the logs of these replicas ("worker-1") or
  // roles ("worker").
  LogMerger(std::filesystem::path folder, std::vector<std::string> wanted)
      : folder_(std::move(folder)), wanted_(std::move(wanted)) {}

  // Returns the new lines; the first time only the last `tail` lines of each log, unless `tail` is
  // negative.
  std::vector<MergedLine> read(int tail, bool even_unfinished);
  // Returns the names of the replicas that have a log so far.
  std::set<std::string> names() const;

 private:
  void find_logs();

  const std::filesystem::path folder_;
  const std::vector<std::string> wanted_;
  std::map<std::string, LogFile> logs_;
  bool first_ = true;
};

}  // namespace muster::cmd
