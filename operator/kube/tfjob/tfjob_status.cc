#include "operator/kube/tfjob/tfjob_status.h"

#include <algorithm>

#include "common/json.h"
#include "operator/api/status.h"
#include "operator/kube/api/metadata.h"

namespace muster::kube {

namespace {

constexpr const char* kRefused = "TFJobFailedValidation";

struct Named {
  const char* type;
  const char* of_job;  // in its message, if it is true
};
// A job has them in this order, which decides between those of one second.
constexpr Named kConditions[] = {
    {"Suspended", "is suspended"}, {"Restarting", "is restarting"},
    {"Running", "is running"},     {"Succeeded", "successfully completed"},
    {"Failed", "has failed"},
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

// Replicas are still leaving.
bool is_being_suspended(const api::Condition& condition) {
  return condition.type == "Suspended" && !condition.status && condition.reason != "Resumed";
}

bool is_true(const Json& condition) {
  return string_or(condition, "status", "") == "True";
}

}  // namespace

Json tfjob_status(const Json& tfjob, const api::TrainingJob& job, const api::JobStatus& status) {
  Json conditions = Json::array({created(tfjob)});
  for (const Named& named : kConditions) {
    const api::Condition* found = status.find(named.type);
    if (found == nullptr || is_being_suspended(*found)) continue;
    const bool resumed = found->type == "Suspended" && !found->status;
    std::string message =
        "TFJob " + name_of(tfjob).key() + " " + (resumed ? "is resumed" : named.of_job) + ".";
    if (found->status && !found->message.empty()) message += " " + found->message;
    conditions.push_back(condition(named.type, found->status,
                                   resumed ? "TFJobResumed" : std::string("TFJob") + named.type,
                                   message, text_of(found->last_transition)));
  }
  // Conditions that are false come first, then Created, because its time is of another clock.
  const auto place = [](const Json& one) {
    const bool follows = is_true(one) && one["type"] != "Created";
    return std::pair(is_true(one), follows ? one["lastTransitionTime"].get<std::string>() : "");
  };
  std::stable_sort(conditions.begin(), conditions.end(),
                   [&](const Json& a, const Json& b) { return place(a) < place(b); });
  Json result = {{"conditions", std::move(conditions)}, {"replicaStatuses", Json::object()}};
  for (const auto& [role, counts] : status.replica_statuses)
    result["replicaStatuses"][type_of(job, role)] = {
        {"active", counts.active}, {"succeeded", counts.succeeded}, {"failed", counts.failed}};
  if (status.start_time) result["startTime"] = text_of(*status.start_time);
  if (status.completion_time) result["completionTime"] = text_of(*status.completion_time);
  return result;
}

Json refused_tfjob_status(const Json& tfjob, const std::string& why, api::Time now) {
  return {{"conditions", {created(tfjob), condition("Failed", true, kRefused, why, text_of(now))}},
          {"completionTime", text_of(now)}};
}

const Json& tfjob_condition(const Json& status, const std::string& type) {
  static const Json none;
  for (const Json& found : member(status, "conditions"))
    if (string_or(found, "type", "") == type) return found;
  return none;
}

bool is_refused_tfjob(const Json& status) {
  return string_or(tfjob_condition(status, "Failed"), "reason", "") == kRefused;
}

bool is_tfjob_finished(const Json& status) {
  return is_true(tfjob_condition(status, "Succeeded")) ||
         is_true(tfjob_condition(status, "Failed"));
}

std::vector<Json> tfjob_news(const Json& before, const Json& after) {
  std::vector<Json> news;
  for (const Json& now : member(after, "conditions"))
    if (is_true(now) && !is_true(tfjob_condition(before, string_or(now, "type", ""))))
      news.push_back(now);
  return news;
}

}  // namespace muster::kube
