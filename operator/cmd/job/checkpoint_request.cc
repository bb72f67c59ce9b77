#include "operator/cmd/job/checkpoint_request.h"

#include <fmt/format.h>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/api/overview.h"
#include "operator/api/status.h"

namespace muster::cmd {

namespace {

const Json& requested_in(const api::JobStatus& status) {
  return member(status.progress, "requestedCheckpoint");
}

std::string request_in(const api::JobStatus& status) {
  return string_or(requested_in(status), "request", "");
}

}  // namespace

CheckpointRequest::CheckpointRequest(const api::TrainingJob& job)
    : text_("muster checkpoint, " + api::format_time(api::wall_time())),
      met_before_(request_in(job.status)) {
  if (job.training.is_null()) {
    throw Invalid("job " + job.name +
                  ": expected one with spec.training, found one that runs a program of its own, "
                  "whose checkpoints Muster does not take");
  }
  const api::JobStatus& status = job.status;
  if (status.is_true("SuccessCriteriaMet") || status.is_true("FailureTarget")) throw_idle(job);
}

void throw_idle(const api::TrainingJob& job) {
  throw Invalid("job " + job.name + ": expected one that trains, found one that is " +
                api::state_word(job.status));
}

std::string CheckpointRequest::Met::text() const {
  return fmt::format("checkpoint of step {} in {}", step, folder);
}

std::optional<CheckpointRequest::Met> CheckpointRequest::met(const api::JobStatus& status,
                                                             const std::string& newest) const {
  const std::string met = request_in(status);
  const bool by_later_one = met == newest && met != met_before_;
  if (met.empty() || (met != text_ && !by_later_one)) return std::nullopt;
  const Json& requested = requested_in(status);
  return Met{integer_or(requested, "step", 0), string_or(requested, "checkpoint", "?")};
}

std::string stopped_text(const std::string& job, const api::JobStatus& status) {
  return fmt::format("{}: expected it to train until the checkpoint is published, found it {}", job,
                     api::state_word(status));
}

std::string late_text(const std::string& job, const CheckpointOptions& options) {
  return fmt::format("{}: expected the checkpoint to be published within {} s, found none yet", job,
                     options.timeout.count());
}

}  // namespace muster::cmd
