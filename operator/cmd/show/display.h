#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include "common/documents/document.h"
#include "operator/api/training_job.h"
#include "operator/plan/values.h"

namespace muster::cmd {

// Returns "0:07", "12:34", "1:02:03".
std::string duration_text(double seconds);
// Returns 1234567 as "1,234,567".
std::string grouped(int64_t number);
// Returns the job's progress on one line: from /progress if it is available, else from the states
// of the replicas. If the line would be wider than `width` columns, whole fields are left out, the
// least important first.
std::string progress_line(const api::TrainingJob& job, const Json& progress,
                          size_t width = std::string::npos);

// Returns the use of the GPUs of a running job's chief, "93 %, 2.0 of 80.0 GiB, 412 W", from
// status.progress; "" if it is not known.
std::string gpus_text(const api::JobStatus& status);

// Returns which member of a running job is slow, by how much and why: "worker-2 takes 1.8 times as
// long as the median member: it waits for its data"; "" if none is known to be slow.
std::string straggler_text(const api::TrainingJob& job);

// Returns what the job's time was spent on, the most first: "computing 71 %, input 13 %, starting
// 9 %, other 7 % of 12:34"; "" if it is not known. With `now` it has the time since the status was
// written too, if the job has not ended.
std::string time_text(const api::JobStatus& status, std::optional<api::Time> now = {});

// Returns a line for each condition that is true, and one if the job is not accepted. A decision
// and its consequence, which say the same, share a line.
std::string conditions_text(const api::JobStatus& status);

// Prints on standard output as JSON or, if `output` is "yaml", as YAML.
void print_value(const Json& value, const std::string& output);

// Shows on screen how a job runs, for `muster run`: events as lines, and progress as one live line
// on a terminal or as a line every few seconds elsewhere.
class Display {
 public:
  explicit Display(FILE* out);
  ~Display();
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  // Prints a text of one or more lines above the live line; nothing for "".
  void print(const std::string& text);
  void event(const plan::Event& event);
  // Draws the live line again if it is due and has changed.
  void update(const api::TrainingJob& job, const Json& progress);
  // Does the same with a line of the caller: `line_of` returns it for at most `width` columns.
  void update(const std::function<std::string(size_t width)>& line_of);
  // Removes the live line.
  void clear();
  // Returns when update() next has something to do.
  api::Time next() const { return next_; }

 private:
  void write(const std::string& text);

  FILE* const out_;
  const bool terminal_;
  api::Time next_;
  std::string line_;  // the line drawn last
};

}  // namespace muster::cmd
