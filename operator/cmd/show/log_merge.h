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
  int64_t second;  // of the clock on the wall; never earlier than that of the line before
  std::string text;
};

// A log that grows. Lines are placed in time by what they begin with: "12:34:56", or
// "2026-11-21 12:34:56" also within a line of ours that begins with "--- "; a line without belongs
// to the one before it.
class LogFile {
 public:
  explicit LogFile(std::filesystem::path path) : path_(std::move(path)) {}

  // Leaves out what has been written so far.
  void skip();
  // The whole lines since the last call; `even_unfinished`: and what follows them.
  std::vector<LogLine> read(bool even_unfinished);

 private:
  void place(const std::string& line);

  std::filesystem::path path_;
  int64_t read_ = 0;
  int64_t day_ = 0;  // since 1970
  int64_t second_ = 0;
};

// Whose logs stand in `folder`: replicas, and "muster" for what happened to the job. None where
// there is no such folder; throws Unavailable where it cannot be read.
std::set<std::string> logged_names(const std::filesystem::path& folder);

// When a line was written, in seconds since 1970; nothing where its log has no date.
std::optional<int64_t> written(const LogLine& line);

// Whether `asked`, a replica ("worker-1") or a role ("worker"), means the replica.
bool means(const std::string& asked, const std::string& replica);

struct MergedLine {
  std::string replica;
  LogLine line;
};

// Several logs as one, in the order of time.
class LogMerger {
 public:
  // Logs of `folder`; with `wanted`, those of these replicas ("worker-1") or roles ("worker").
  LogMerger(std::filesystem::path folder, std::vector<std::string> wanted)
      : folder_(std::move(folder)), wanted_(std::move(wanted)) {}

  // Returns the new lines; the first time only the last `tail` lines of each log, unless `tail` is
  // negative.
  std::vector<MergedLine> read(int tail, bool even_unfinished);
  // The names of the replicas that have a log so far.
  std::set<std::string> names() const;

 private:
  void find_logs();

  const std::filesystem::path folder_;
  const std::vector<std::string> wanted_;
  std::map<std::string, LogFile> logs_;
  bool first_ = true;
};

}  // namespace muster::cmd
