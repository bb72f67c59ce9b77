#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "operator/api/training_job.h"

namespace muster::cmd {

struct CheckpointOptions {
  bool wait = true;
  std::chrono::seconds timeout{0};       // 0: no limit
  std::chrono::milliseconds every{500};  // between two looks
};

// One request of `muster checkpoint`.
class CheckpointRequest {
 public:
  // Throws Invalid, saying what was expected, if the job will take no checkpoint: it has no
  // spec.training, or its end is decided.
  explicit CheckpointRequest(const api::TrainingJob& job);

  // The request's own text, which no other request has.
  const std::string& text() const { return text_; }

  // Returns "checkpoint of step 1200 in <folder>" once the request is met: `folder` of the job's
  // status as the replicas see it. `newest` is the text of the newest request of the job, which may
  // be another: a checkpoint that was taken for a later request meets this one too.
  struct Met {
    int64_t step = 0;
    std::string folder;
    std::string text() const;
  };
  std::optional<Met> met(const api::JobStatus& status, const std::string& newest) const;

 private:
  std::string text_;
  std::string met_before_;  // the request that had been met when this one was made
};

// Throws Invalid for a job that does not train, which names the state that it is in.
[[noreturn]] void throw_idle(const api::TrainingJob& job);

// Returns the error for a job that has stopped before the request was met.
std::string stopped_text(const std::string& job, const api::JobStatus& status);
// Returns the error for a request that is not met within the timeout.
std::string late_text(const std::string& job, const CheckpointOptions& options);

}  // namespace muster::cmd
