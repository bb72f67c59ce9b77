#include "operator/kube/tfjob/tfjob_status.h"

#include <algorithm>

#include "common/documents/json.h"
#include "operator/api/status.h"
#include "operator/kube/api/metadata.h"
#include "operator/kube/cluster/report_pace.h"
#include "operator/kube/tfjob/companion.h"

namespace muster::kube {

namespace {

constexpr const char* kRefused = "TFJobFailedValidation";
constexpr const char* kResumed = "TFJobResumed";

struct Named {
  const char* type;
  const char* of_companion;  // the companion's condition that corresponds
  const char* of_job;        // the message if the condition is true
};
// A job gets the conditions in this order; the order decides between conditions of the same second.
constexpr Named kConditions[] = {
    {"Suspended", "Suspended", "is suspended"},
    {"Restarting", "Restarting", "is restarting"},
    {"Succeeded", "SuccessCriteriaMet", "successfully completed"},
    {"Failed", "FailureTarget", "has failed"},
};

// Returns the time without a fraction of a second, which kubeflow.org/v1 does not have.
std::string text_of(api::Time time) {
  return api::format_time(std::chrono::floor<std::chrono::seconds>(time)).substr(0, 19) + "Z";
}

Json condition(const std::string& type, bool status, const std::string& reason,
               const std::string& message, const std::string& since) {
  return {{"type", type},
          {"status", status ? "True" : "False"},
          {"reason", reason},
          {"message", message},
          {"lastUpdateTime", since},
          {"lastTransitionTime", since}};
}

Json created(const Json& tfjob) {
  return condition("Created", true, "TFJobCreated",
                   "TFJob " + name_of(tfjob).key() + " is created.",
                   string_or(tfjob.at("metadata"), "creationTimestamp", ""));
}

const char* type_of(const api::TrainingJob& job, api::Role role) {
  switch (role) {
    case api::Role::ps:
      return "PS";
    case api::Role::chief:
      return job.says_master ? "Master" : "Chief";
    case api::Role::worker:
      return "Worker";
    case api::Role::evaluator:
      break;
  }
  return "Evaluator";
}

// Whether the job is being suspended: replicas are still leaving.
bool is_being_suspended(const api::Condition& condition) {
  return condition.type == "Suspended" && !condition.status && condition.reason != "Resumed";
}

bool is_true(const Json& condition) {
  return string_or(condition, "status", "") == "True";
}

// Adds Running, which is absent until the job runs.
void add_running(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status,
                 api::Time now, Json& conditions) {
  const bool runs = any_trains(job, status);
  const Json& before = tfjob_condition(member(tfjob, "status"), "Running");
  if (!runs && before.is_null()) return;
  const std::string since =
      is_true(before) == runs ? string_or(before, "lastTransitionTime", "") : text_of(now);
  conditions.push_back(condition("Running", runs, "TFJobRunning",
                                 "TFJob " + name_of(tfjob).key() + " is running.", since));
}

// Replicas that do not end by themselves, for example ps, are stopped when the job succeeds and
// count as succeeded.
Json counts_of(const api::ReplicaSpec& spec, const api::ReplicaStatus& counts, bool succeeded) {
  if (!succeeded)
    return {{"active", counts.ready}, {"succeeded", counts.succeeded}, {"failed", counts.failed}};
  return {{"active", 0}, {"succeeded", spec.replicas - counts.failed}, {"failed", counts.failed}};
}

// Returns the beginning of the message of a refused TFJob. It shows later whether the spec has
// changed.
std::string refusal_of(const Json& tfjob) {
  return "Generation " + generation_of(tfjob) + " of this TFJob was refused: ";
}

}  // namespace

Json tfjob_status(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status,
                  api::Time now) {
  if (const Json& before = member(tfjob, "status"); is_true(tfjob_condition(before, "Succeeded")))
    return before;
  Json conditions = Json::array({created(tfjob)});
  for (const Named& named : kConditions) {
    const api::Condition* found = status.find(named.of_companion);
    if (found == nullptr || is_being_suspended(*found)) continue;
    const bool resumed = found->type == "Suspended" && !found->status;
    std::string message =
        "TFJob " + name_of(tfjob).key() + " " + (resumed ? "is resumed" : named.of_job) + ".";
    if (found->status && !found->message.empty()) message += " " + found->message;
    conditions.push_back(condition(named.type, found->status,
                                   resumed ? kResumed : std::string("TFJob") + named.type, message,
                                   text_of(found->last_transition)));
  }
  add_running(tfjob, job, status, now, conditions);
  // False conditions come first, then Created, whose time comes from another clock.
  const auto place = [](const Json& one) {
    const bool follows = is_true(one) && one["type"] != "Created";
    return std::pair(is_true(one), follows ? one["lastTransitionTime"].get<std::string>() : "");
  };
  std::stable_sort(conditions.begin(), conditions.end(),
                   [&](const Json& a, const Json& b) { return place(a) < place(b); });
  Json result = {{"conditions", std::move(conditions)}, {"replicaStatuses", Json::object()}};
  const bool succeeded = status.is_true("SuccessCriteriaMet");
  for (const auto& [role, spec] : job.replicas) {
    const auto counts = status.replica_statuses.find(role);
    if (counts != status.replica_statuses.end())
      result["replicaStatuses"][type_of(job, role)] = counts_of(spec, counts->second, succeeded);
  }
  if (status.start_time) result["startTime"] = text_of(*status.start_time);
  for (const char* decision : {"SuccessCriteriaMet", "FailureTarget"})
    if (status.is_true(decision))
      result["completionTime"] = text_of(status.find(decision)->last_transition);
  return result;
}

Json refused_tfjob_status(const Json& tfjob, const std::string& why, api::Time now) {
  const std::string message = refusal_of(tfjob) + why;
  return {
      {"conditions", {created(tfjob), condition("Failed", true, kRefused, message, text_of(now))}},
      {"completionTime", text_of(now)}};
}

const Json& tfjob_condition(const Json& status, std::string_view type) {
  static const Json none;
  for (const Json& found : member(status, "conditions"))
    if (string_or(found, "type", "") == type) return found;
  return none;
}

bool is_tfjob_finished(const Json& status) {
  return is_true(tfjob_condition(status, "Succeeded")) ||
         is_true(tfjob_condition(status, "Failed"));
}

bool is_refused_tfjob(const Json& tfjob) {
  const Json& failed = tfjob_condition(member(tfjob, "status"), "Failed");
  return string_or(failed, "reason", "") == kRefused &&
         string_or(failed, "message", "").starts_with(refusal_of(tfjob));
}

bool is_tfjob_over(const Json& tfjob) {
  const Json& status = member(tfjob, "status");
  const Json& failed = tfjob_condition(status, "Failed");
  if (string_or(failed, "reason", "") != kRefused) return is_tfjob_finished(status);
  return is_refused_tfjob(tfjob);
}

std::vector<Json> tfjob_news(const Json& before, const Json& after) {
  std::vector<Json> news;
  for (const Json& now : member(after, "conditions")) {
    const bool was_true = is_true(tfjob_condition(before, string_or(now, "type", "")));
    const bool is_resumed = was_true && string_or(now, "reason", "") == kResumed;
    if ((is_true(now) && !was_true) || is_resumed) news.push_back(now);
  }
  return news;
}

}  // namespace muster::kube
