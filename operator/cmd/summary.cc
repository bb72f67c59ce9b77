#include "operator/cmd/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <fstream>

#include "common/error.h"
#include "common/exit_code.h"
#include "common/json.h"
#include "operator/cmd/display.h"
#include "operator/cmd/job_source.h"
#include "operator/cmd/not_evaluated.h"
#include "operator/cmd/resume.h"
#include "operator/cmd/small_model.h"
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

// One row of the summary on screen; nothing for null.
std::string row(const char* label, const Json& value, const char* format) {
  if (value.is_null()) return "";
  const std::string text = value.is_number_integer() ? grouped(value.get<int64_t>())
                           : value.is_number()
                               ? fmt::format(fmt::runtime(format), value.get<double>())
                           : value.is_string() ? value.get<std::string>()
                                               : value.dump();
  return fmt::format("  {:<21}{}\n", label, text);
}

// Of a training that early stopping has ended before its last epoch; else null.
Json stopped_early_text(const Json& summary) {
  if (summary["stoppedEarly"] != true) return nullptr;
  const Json& best = summary["best"];
  if (!best.is_object()) return "no evaluation came to a finite value";
  return fmt::format("the best {}, {:.6g}, was after epoch {}, at step {}",
                     best["metric"].get<std::string>(), best["value"].get<double>(),
                     best["epoch"].get<int64_t>(), grouped(best["step"].get<int64_t>()));
}

std::string wall_text(double seconds) {
  return seconds < 60 ? fmt::format("{:.1f} s", seconds) : duration_text(seconds);
}

const api::ReplicaRecord* record_of(const api::JobStatus& status, const ObservedReplica& replica) {
  const auto found = std::ranges::find_if(status.records, [&](const api::ReplicaRecord& record) {
    return record.role == replica.role && record.index == replica.index;
  });
  return found == status.records.end() ? nullptr : &*found;
}

// What result.json says of a job that succeeded, and the same, as far as it goes, of one that has
// come as far as its newest checkpoint.
Json result_of(const local::JobDirectory& directory, const api::TrainingJob& job) {
  if (job.status.is_true("Succeeded")) return local::read_json_or_null(directory.result());
  if (job.training.is_null()) return nullptr;
  std::optional<checkpoint::Store::Found> found;
  try {
    found = search_checkpoints(directory).newest;
  } catch (const Unavailable&) {
    return nullptr;  // the rest of the summary is not to be lost for it
  }
  if (!found) return Json::object({{"step", 0}});
  const checkpoint::Position& position = found->manifest.position;
  const std::optional<double> loss = position.sums.train_loss(position.epoch);
  return {{"step", position.step},
          {"epochs", position.epoch},
          {"trainLoss", loss ? Json(*loss) : Json()},
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
  const Json& step = member(result, "step");
  const Json evaluation = local::evaluation_of(directory, result);
  const Json& validation = member(evaluation, "validation");
  const Json& test = member(evaluation, "test");
  Json summary;
  summary["state"] = state_of(job.status);
  summary["step"] = step.is_null() ? member(job.status.progress, "step") : step;
  summary["epochs"] = member(result, "epochs");
  summary["trainLoss"] = member(result, "trainLoss");
  summary["validationLoss"] = member(validation, "loss");
  summary["validationAccuracy"] = member(validation, "accuracy");
  summary["testLoss"] = member(test, "loss");
  summary["testAccuracy"] = member(test, "accuracy");
  summary["notEvaluated"] = not_evaluated(job, replicas, evaluation);
  summary["wallSeconds"] = wall_seconds;
  for (const char* field : {"weightsDigest", "checkpoint", "model", "secondsPerBatch",
                            "examplesPerSecond", "stoppedEarly", "best"}) {
    summary[field] = member(result, field);
  }
  const Json model = summary["model"];
  summary["parameters"] =
      model.is_string() ? few_parameters(directory.root() / model.get<std::string>()) : Json();
  summary["failure"] = failure_of(directory, job, replicas);
  return summary;
}

std::string summary_text(const std::string& name, const Json& summary,
                         const local::JobDirectory& directory) {
  // Files of the job, as the user would name them from here.
  const auto file = [&](const char* field) {
    const Json& path = summary[field];
    return path.is_string() ? Json(shown(directory.root() / path.get<std::string>())) : path;
  };
  const bool accuracy =
      !summary["testAccuracy"].is_null() || !summary["validationAccuracy"].is_null();
  std::string text = fmt::format("{}: {} after {}\n", name, summary["state"].get<std::string>(),
                                 wall_text(summary["wallSeconds"].get<double>()));
  text += row("steps", summary["step"], "{:.0f}");
  text += row("epochs", summary["epochs"], "{:.2f}");
  text += row("stopped early", stopped_early_text(summary), "");
  text += row("training loss", summary["trainLoss"], "{:.6g}");
  if (!accuracy) text += row("validation loss", summary["validationLoss"], "{:.6g}");
  text += row("validation accuracy", summary["validationAccuracy"], "{:.4f}");
  if (!accuracy) text += row("test loss", summary["testLoss"], "{:.6g}");
  text += row("test accuracy", summary["testAccuracy"], "{:.4f}");
  for (const auto& [data, why] : summary["notEvaluated"].items()) {
    text += row((data + " data").c_str(), "not evaluated: " + why.get<std::string>(), "");
  }
  const Json& speed = summary["examplesPerSecond"];
  text +=
      row("examples/s", speed.is_number() ? Json(std::llround(speed.get<double>())) : Json(), "");
  text += row("seconds per batch", summary["secondsPerBatch"], "{:.6f}");
  if (!summary["parameters"].is_null()) {
    text += row("parameters", parameters_text(summary["parameters"]), "");
  }
  text += row("weights (SHA-256)", summary["weightsDigest"], "");
  text += row("checkpoint", file("checkpoint"), "");
  text += row("model", file("model"), "");
  text.pop_back();
  return text;
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
    // The message of the decision begins with the name of the one it is about.
    if (target->message.starts_with(name + " ")) return Failure{name, replica.exit_code};
    if (first == nullptr || replica.finished < first->finished) first = &replica;
  }
  if (first == nullptr || target->reason == "DeadlineExceeded") return std::nullopt;
  return Failure{local::replica_name(job, first->role, first->index), first->exit_code};
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
    // What earlier attempts said was told when they ended.
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
  const int code = failure ? failure->exit_code.value_or(kInternal) : kInternal;
  return code > 0 && code < 126 ? code : kInternal;
}

}  // namespace muster::cmd
