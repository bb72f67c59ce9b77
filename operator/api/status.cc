#include "operator/api/status.h"

#include <algorithm>
#include <cstdio>

#include "common/documents/json.h"
#include "operator/api/overview.h"

namespace muster::api {

namespace {

using std::chrono::milliseconds;

int count_at(const Json& value, const char* key) {
  return static_cast<int>(integer_or(value, key, 0));
}

std::optional<Time> time_at(const Json& value, const char* key) {
  return parse_time(string_or(value, key, ""));
}

Json to_json(const Condition& condition) {
  const char* no = condition.reason == "Unknown" ? "Unknown" : "False";
  return {{"type", condition.type},
          {"status", condition.status ? "True" : no},
          {"reason", condition.reason},
          {"message", condition.message},
          {"lastTransitionTime", format_time(condition.last_transition)}};
}

Condition to_condition(const Json& value) {
  return {string_or(value, "type", ""), string_or(value, "status", "") == "True",
          string_or(value, "reason", ""), string_or(value, "message", ""),
          time_at(value, "lastTransitionTime").value_or(Time{})};
}

Json to_json(const ReplicaStatus& status) {
  return {{"ready", status.ready},
          {"active", status.active},
          {"succeeded", status.succeeded},
          {"failed", status.failed},
          {"restarts", status.restarts}};
}

ReplicaStatus to_replica_status(const Json& value) {
  return {count_at(value, "ready"), count_at(value, "active"), count_at(value, "succeeded"),
          count_at(value, "failed"), count_at(value, "restarts")};
}

Json to_json(const TrainingLength& length) {
  Json value = Json::object();
  if (length.epochs) value["epochs"] = *length.epochs;
  if (length.steps) value["steps"] = *length.steps;
  return value;
}

Json to_json(const Security& security) {
  if (security.keys.empty()) return {{"transport", "none"}};
  Json value = {{"transport", "tls"}, {"secret", security.keys}};
  if (security.restart_run != 0) value["restartRun"] = security.restart_run;
  return value;
}

// Fields with their initial values are left out: a status is written often, and most replicas never
// fail.
Json to_json(const ReplicaRecord& record) {
  Json value = {{"role", name_of(record.role)}, {"index", record.index}};
  if (record.attempt != 0) value["attempt"] = record.attempt;
  if (record.restarts != 0) value["restarts"] = record.restarts;
  if (record.in_round) value["inRound"] = true;
  if (record.failed_at) value["failedAt"] = format_time(*record.failed_at);
  if (record.succeeded) value["succeeded"] = true;
  if (record.failed) value["failed"] = true;
  if (record.exit_code) value["exitCode"] = *record.exit_code;
  if (record.not_before != Time{}) value["notBefore"] = format_time(record.not_before);
  if (record.failures_in_row != 0) value["failuresInRow"] = record.failures_in_row;
  if (record.restarts_in_place != 0) value["restartsInPlace"] = record.restarts_in_place;
  if (!record.replacing.empty()) value["replacing"] = record.replacing;
  if (!record.avoided_nodes.empty()) value["avoidedNodes"] = record.avoided_nodes;
  return value;
}

std::optional<ReplicaRecord> to_record(const Json& value) {
  const auto role = role_of(string_or(value, "role", ""));
  if (!role) return std::nullopt;
  ReplicaRecord record;
  record.role = *role;
  record.index = count_at(value, "index");
  record.attempt = count_at(value, "attempt");
  record.restarts = count_at(value, "restarts");
  record.in_round = bool_or(value, "inRound", false);
  record.failed_at = time_at(value, "failedAt");
  record.succeeded = bool_or(value, "succeeded", false);
  record.failed = bool_or(value, "failed", false);
  if (member(value, "exitCode").is_number_integer()) record.exit_code = count_at(value, "exitCode");
  record.not_before = time_at(value, "notBefore").value_or(Time{});
  record.failures_in_row = count_at(value, "failuresInRow");
  record.restarts_in_place = count_at(value, "restartsInPlace");
  record.replacing = string_or(value, "replacing", "");
  for (const Json& node : member(value, "avoidedNodes"))
    if (node.is_string()) record.avoided_nodes.push_back(node);
  return record;
}

bool digits(const std::string& text, size_t from, size_t length, int& number) {
  number = 0;
  for (size_t i = from; i < from + length; ++i) {
    if (i >= text.size() || text[i] < '0' || text[i] > '9') return false;
    number = number * 10 + (text[i] - '0');
  }
  return true;
}

}  // namespace

const Condition* JobStatus::find(const std::string& type) const {
  const auto found =
      std::find_if(conditions.begin(), conditions.end(),
                   [&](const Condition& condition) { return condition.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool JobStatus::is_true(const std::string& type) const {
  const Condition* condition = find(type);
  return condition != nullptr && condition->status;
}

Time wall_time() {
  return std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
}

Time steady_time() {
  const auto since_boot = [] {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return milliseconds(std::chrono::seconds(time.tv_sec)) + milliseconds(time.tv_nsec / 1'000'000);
  };
  static const Time first = wall_time();
  static const milliseconds began = since_boot();
  return first + (since_boot() - began);
}

std::string format_time(Time time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(time - days);
  char text[64];
  std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", int(date.year()),
                unsigned(date.month()), unsigned(date.day()), int(clock.hours().count()),
                int(clock.minutes().count()), int(clock.seconds().count()),
                int(clock.subseconds().count()));
  return text;
}

std::chrono::nanoseconds parse_fraction(std::string_view text, size_t& at) {
  int64_t number = 0, scale = 100'000'000;
  if (at >= text.size() || text[at] != '.') return {};
  for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) {
    number += (text[at] - '0') * scale;
  }
  return std::chrono::nanoseconds(number);
}

std::optional<Time> parse_time(const std::string& text) {
  int year, month, day, hour, minute, second;
  if (!digits(text, 0, 4, year) || !digits(text, 5, 2, month) || !digits(text, 8, 2, day) ||
      !digits(text, 11, 2, hour) || !digits(text, 14, 2, minute) || !digits(text, 17, 2, second)) {
    return std::nullopt;
  }
  if (text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  size_t at = 19;
  const auto fraction = std::chrono::floor<milliseconds>(parse_fraction(text, at));
  if (!date.ok() || hour > 23 || minute > 59 || second > 60 || text.substr(at) != "Z") {
    return std::nullopt;
  }
  return std::chrono::sys_days(date) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + fraction;
}

Json to_json(const JobStatus& status) {
  Json value = {{"observedGeneration", status.observed_generation},
                {"conditions", Json::array()},
                {"replicaStatuses", Json::object()},
                {"restarts", status.restarts}};
  if (!status.counted_uids.empty()) value["countedUids"] = status.counted_uids;
  if (status.run != 0) value["run"] = status.run;
  if (status.trained_to) value["trainedTo"] = to_json(*status.trained_to);
  if (status.storage_folder) value["storageFolder"] = *status.storage_folder;
  if (status.restart_run != 0) value["restartRun"] = status.restart_run;
  if (status.security) value["security"] = to_json(*status.security);
  for (const Condition& condition : status.conditions) {
    value["conditions"].push_back(to_json(condition));
  }
  for (const auto& [role, counts] : status.replica_statuses) {
    value["replicaStatuses"][name_of(role)] = to_json(counts);
  }
  for (const auto& [role, replicas] : status.group) value["group"][name_of(role)] = replicas;
  for (const auto& [role, reasons] : status.restart_reasons)
    for (const auto& [reason, restarts] : reasons)
      value["restartReasons"][name_of(role)][reason] = restarts;
  for (const ReplicaRecord& record : status.records) value["records"].push_back(to_json(record));
  if (status.start_time) value["startTime"] = format_time(*status.start_time);
  if (status.completion_time) value["completionTime"] = format_time(*status.completion_time);
  if (status.final_checkpoint_time) {
    value["finalCheckpointTime"] = format_time(*status.final_checkpoint_time);
  }
  if (!status.cause.empty()) value["cause"] = status.cause;
  if (!status.progress.is_null()) value["progress"] = status.progress;
  if (!status.results.is_null()) value["results"] = status.results;
  if (!status.goodput.is_null()) value["goodput"] = status.goodput;
  value["state"] = state_word(status);
  if (const std::string ready = ready_text(status); !ready.empty()) value["ready"] = ready;
  if (const std::string steps = steps_text(status); !steps.empty()) value["steps"] = steps;
  return value;
}

JobStatus to_job_status(const Json& value) {
  JobStatus status;
  status.observed_generation = integer_or(value, "observedGeneration", 0);
  for (const Json& condition : member(value, "conditions")) {
    status.conditions.push_back(to_condition(condition));
  }
  for (const Role role : kRoles) {
    const Json& counts = member(member(value, "replicaStatuses"), name_of(role));
    if (counts.is_object()) status.replica_statuses[role] = to_replica_status(counts);
    const int replicas = count_at(member(value, "group"), name_of(role));
    if (replicas > 0) status.group[role] = replicas;
    const Json& reasons = member(member(value, "restartReasons"), name_of(role));
    if (!reasons.is_object()) continue;
    for (const auto& [reason, restarts] : reasons.items())
      if (const int known = count_at(reasons, reason.c_str()); known > 0)
        status.restart_reasons[role][reason] = known;
  }
  for (const Json& record : member(value, "records")) {
    if (auto known = to_record(record)) status.records.push_back(*known);
  }
  status.counted_uids = strings_in(member(value, "countedUids"));
  status.restarts = count_at(value, "restarts");
  status.run = count_at(value, "run");
  if (const Json& length = member(value, "trainedTo"); length.is_object())
    status.trained_to = to_training_length(length);
  if (const Json& folder = member(value, "storageFolder"); folder.is_string())
    status.storage_folder = folder.get<std::string>();
  status.restart_run = count_at(value, "restartRun");
  if (const Json& security = member(value, "security"); security.is_object())
    status.security = Security{string_or(security, "secret", ""), count_at(security, "restartRun")};
  status.start_time = time_at(value, "startTime");
  status.completion_time = time_at(value, "completionTime");
  status.final_checkpoint_time = time_at(value, "finalCheckpointTime");
  status.cause = string_or(value, "cause", "");
  status.progress = member(value, "progress");
  status.results = member(value, "results");
  status.goodput = member(value, "goodput");
  return status;
}

}  // namespace muster::api
