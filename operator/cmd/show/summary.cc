#include "operator/cmd/show/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <fstream>

#include "common/documents/json.h"
#include "common/documents/json_file.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/job/metric_name.h"
#include "common/job/results.h"
#include "operator/api/disruption.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/resume.h"
#include "operator/cmd/show/not_evaluated.h"
#include "operator/cmd/show/small_model.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/plan/describe.h"

namespace muster::cmd {

namespace {

namespace fs = std::filesystem;
using plan::ObservedReplica;

constexpr size_t kLogLines = 12;

std::vector<std::string> last_lines(const fs::path& log, size_t count) {
  constexpr std::streamoff kTail = 64 * 1024;
  std::ifstream file(log, std::ios::binary);
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (size > kTail) {
    file.seekg(size - kTail);
    file.ignore(kTail, '\n');
  } else {
    file.seekg(0);
  }
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line);
    if (lines.size() > count) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

const api::ReplicaRecord* record_of(const api::JobStatus& status, const ObservedReplica& replica) {
  const auto found = std::ranges::find_if(status.records, [&](const api::ReplicaRecord& record) {
    return record.role == replica.role && record.index == replica.index;
  });
  return found == status.records.end() ? nullptr : &*found;
}

// Returns result.json of a job that succeeded; for another job that trains, the same fields as far
// as its newest checkpoint has them.
Json result_of(const local::JobDirectory& directory, const api::TrainingJob& job) {
  if (job.status.is_true("Succeeded")) return read_json_or_null(directory.result());
  if (job.training.is_null()) return nullptr;
  std::optional<checkpoint::Store::Found> found;
  try {
    found = search_checkpoints(directory).newest;
  } catch (const Unavailable&) {
    return nullptr;  // the rest of the summary must not be lost because of this file
  }
  if (!found) return Json::object({{"step", 0}});
  const checkpoint::Position& position = found->manifest.position;
  const compute::LossSums trained = position.sums.last_whole(position.epoch);
  return {{"step", position.step},
          {"epochs", position.epoch},
          {"trainLoss", trained.weight > 0 ? Json(trained.loss / trained.weight) : Json()},
          {"checkpoint", found->directory.lexically_relative(directory.root()).string()}};
}

Json failure_of(const local::JobDirectory& directory, const api::TrainingJob& job,
                const std::vector<ObservedReplica>& replicas) {
  const api::Condition* target = job.status.find("FailureTarget");
  if (target == nullptr || !target->status) return nullptr;
  const std::optional<Failure> failure = deciding_failure(job, replicas);
  const auto log = [&] {
    return directory.log(failure->name).lexically_relative(directory.root());
  };
  Json value;
  value["reason"] = target->reason;
  value["message"] = target->message;
  value["replica"] = failure ? Json(failure->name) : Json();
  value["exitCode"] = failure && failure->exit_code ? Json(*failure->exit_code) : Json();
  value["log"] = failure ? Json(log().string()) : Json();
  return value;
}

// Copies loss and accuracy (null if missing) and each further metric.
void take_metrics(const char* data, const Json& evaluation, Json& summary) {
  const Json& metrics = member(evaluation, data);
  for (const char* name : {"loss", "accuracy"})
    summary[metric_field(data, name)] = member(metrics, name);
  if (!metrics.is_object()) return;
  for (const auto& [name, value] : metrics.items()) {
    if (value.is_number()) summary[metric_field(data, name)] = value;
    if (value.is_null()) summary["notFinite"].push_back(metric_field(data, name));
  }
}

// Returns the members that local jobs and jobs on a cluster have in common.
Json summarize(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas,
               const Json& result, const Json& evaluation) {
  const Json& step = member(result, "step");
  Json summary;
  summary["state"] = state_of(job.status);
  summary["step"] = step.is_null() ? member(job.status.progress, "step") : step;
  for (const char* field : {"epochs", "trainLoss", "trainAccuracy"}) {
    summary[field] = member(result, field);
  }
  summary["notFinite"] = member(evaluation, "notFinite");
  take_metrics("validation", evaluation, summary);
  take_metrics("test", evaluation, summary);
  summary["notEvaluated"] = not_evaluated(job, replicas, evaluation);
  summary["notMeasured"] = not_measured(job, evaluation);
  summary["wallSeconds"] = nullptr;
  for (const char* field : {"share", "seconds"})
    if (const Json& value = member(job.status.goodput, field); !value.is_null())
      summary["goodput"][field] = value;
  for (const char* field :
       {"trainSeconds", "weightsDigest", "checkpoint", "model", "onnx", "secondsPerBatch",
        "examplesPerSecond", "stoppedEarly", "reached", "best", "exportedStep"}) {
    summary[field] = member(result, field);
  }
  if (const Json& best = member(evaluation, "best"); best.is_object()) summary["best"] = best;
  return summary;
}

}  // namespace

std::string state_of(const api::JobStatus& status) {
  for (const char* state : {"Succeeded", "Failed", "Suspended"}) {
    if (status.is_true(state)) return state;
  }
  return "Running";
}

Json summary_of(const local::JobDirectory& directory, const api::TrainingJob& job,
                const std::vector<ObservedReplica>& replicas, double wall_seconds) {
  const Json result = result_of(directory, job);
  Json summary = summarize(job, replicas, result, evaluation_of(directory.root(), result));
  summary["wallSeconds"] = wall_seconds;
  const Json model = summary["model"];
  summary["parameters"] =
      model.is_string() ? few_parameters(directory.root() / model.get<std::string>()) : Json();
  summary["failure"] = failure_of(directory, job, replicas);
  return summary;
}

Json summary_of(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas) {
  const api::JobStatus& status = job.status;
  Json summary = summarize(job, replicas, status.results, status.results);
  if (status.results.is_null()) summary["notEvaluated"] = nullptr;  // not known
  if (status.start_time && status.completion_time) {
    const std::chrono::duration<double> taken = *status.completion_time - *status.start_time;
    summary["wallSeconds"] = taken.count();
  }
  return summary;
}

Json with_shown_files(Json summary, const local::JobDirectory& directory) {
  for (const char* field : {"checkpoint", "model", "onnx"}) {
    const std::string path = string_or(summary, field, "");
    if (!path.empty()) summary[field] = shown(directory.root() / path);
  }
  return summary;
}

std::optional<Failure> deciding_failure(const api::TrainingJob& job,
                                        const std::vector<ObservedReplica>& replicas) {
  const api::Condition* target = job.status.find("FailureTarget");
  if (target == nullptr || !target->status) return std::nullopt;
  const ObservedReplica* first = nullptr;
  for (const ObservedReplica& replica : replicas) {
    const std::string name = local::replica_name(job, replica.role, replica.index);
    const api::ReplicaRecord* record = record_of(job.status, replica);
    if (record == nullptr || !record->failed || !replica.finished) continue;
    // The message of the decision begins with the name of the deciding replica.
    if (target->message.starts_with(name + " "))
      return Failure{name, replica.exit_code, replica.reason};
    if (first == nullptr || replica.finished < first->finished) first = &replica;
  }
  if (first == nullptr || target->reason == "DeadlineExceeded") return std::nullopt;
  return Failure{local::replica_name(job, first->role, first->index), first->exit_code,
                 first->reason};
}

std::string cause_text(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas) {
  const api::Condition* target = job.status.find("FailureTarget");
  if (target == nullptr) return "";
  std::string message = target->message;
  for (const ObservedReplica& replica : replicas) {
    const std::string name = local::replica_name(job, replica.role, replica.index);
    const std::string quote = plan::quote_of(replica);
    const size_t at = quote.empty() ? std::string::npos : message.find(quote);
    if (message.starts_with(name + " ") && at != std::string::npos) message.erase(at, quote.size());
  }
  return fmt::format("({}): {}", target->reason, message);
}

std::string log_end_text(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas,
                         const local::JobDirectory& directory) {
  const std::optional<Failure> failure = deciding_failure(job, replicas);
  if (!failure) return "";
  const fs::path log = directory.log(failure->name);
  std::string text;
  for (const std::string& line : last_lines(log, kLogLines)) {
    // The lines of an earlier attempt were shown when it ended.
    if (line.starts_with("--- " + failure->name + " attempt ")) text.clear();
    text += "\n    " + line;
  }
  return "The end of " + shown(log) + ":" + text;
}

int exit_code_of(const api::TrainingJob& job, const std::vector<ObservedReplica>& replicas,
                 const Json& summary) {
  if (!job.status.is_true("FailureTarget")) {
    return member(summary, "notEvaluated").is_null() ? kSuccess : kNotEvaluated;
  }
  if (job.status.find("FailureTarget")->reason == "DeadlineExceeded") return kDeadline;
  const std::optional<Failure> failure = deciding_failure(job, replicas);
  const bool started = !failure || failure->reason != api::kNotStarted;
  const int unknown = started ? kInternal : kUnavailable;
  const int code = failure ? failure->exit_code.value_or(unknown) : unknown;
  // A code of a signal would mean that `muster run` itself was interrupted.
  const bool is_signal = code > 128 && code <= 128 + 64;
  return code <= 0 || is_signal ? kInternal : code;
}

}  // namespace muster::cmd
