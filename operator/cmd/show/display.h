#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "common/document.h"
#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// "0:07", "12:34", "1:02:03".
std::string duration_text(double seconds);
// 1234567 as "1,234,567".
std::string grouped(int64_t number);
// How far a job has come, on one line: by /progress where there is one, else by its replicas. Where
// it would be wider than `width` columns, it does without the fields that are missed least, whole.
std::string progress_line(const api::TrainingJob& job, const Json& progress,
                          size_t width = std::string::npos);

// The conditions that hold, a line each, and that the job is not accepted; a decision and what it
// has led to say the same, and share one.
std::string conditions_text(const api::JobStatus& status);

// On standard output as JSON or, where `output` is "yaml", as YAML.
void print_value(const Json& value, const std::string& output);

// What `muster run` shows while a job runs: events as lines, and progress as one live line on a
// terminal or as a line every few seconds elsewhere.
class Display {
 public:
  explicit Display(FILE* out);
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  // Text of one or more lines, above the live line; nothing for "".
  void print(const std::string& text);
  void event(const plan::Event& event);
  // Draws again if it is time and there is news.
  void update(const api::TrainingJob& job, const Json& progress);
  // This one shows the caller's line, which `line_of` makes for at most `width` columns.
  void update(const std::function<std::string(size_t width)>& line_of);
  // Takes the live line away.
  void clear();
  // When update() next has something to do.
  std::chrono::system_clock::time_point next() const { return next_; }

 private:
  void write(const std::string& text);

  FILE* const out_;
  const bool terminal_;
  std::chrono::system_clock::time_point next_;
  std::string line_;  // as drawn last
};

}  // namespace muster::cmd
