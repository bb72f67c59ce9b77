#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace muster::cmd {

struct CheckpointOptions {
  bool wait = true;
  std::chrono::seconds timeout{0};       // 0: no limit
  std::chrono::milliseconds every{500};  // time between two looks
};

// One request of `muster checkpoint`.
class CheckpointRequest {
 public:
  // Throws Invalid, saying what was expected, if the job will write no checkpoint, because it has
  // no spec.training or its end is decided.
  explicit CheckpointRequest(const api::TrainingJob& job);

  // The unique text of this request.
  const std::string& text() const { return text_; }

  // Met::text() returns "checkpoint of step 1200 in <folder>"; `folder` is the path in the job's
  // status, as the replicas see it. met() returns a value once the request is met. `newest` is the
  // text of the job's newest request: a checkpoint for a later request meets this request too.
  struct Met {
    int64_t step = 0;
    std::string folder;
    std::string text() const;
  };
  std::optional<Met> met(const api::JobStatus& status, const std::string& newest) const;

 private:
  std::string text_;
  std::string met_before_;  // the last request that was met when this request was made
};

// Throws Invalid, naming the job's state, for a job that does not train.
[[noreturn]] void throw_idle(const api::TrainingJob& job);

// Returns the error for a job that has stopped before the request was met.
std::string stopped_text(const std::string& job, const api::JobStatus& status);
// Returns the error for a request that is not met within the timeout.
std::string late_text(const std::string& job, const CheckpointOptions& options);

}  // namespace muster::cmd
