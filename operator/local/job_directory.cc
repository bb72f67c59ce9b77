#include "operator/local/job_directory.h"

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "common/error.h"
#include "common/system/file.h"
#include "operator/api/status.h"

namespace muster::local {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void not_ours(const fs::path& path, const std::string& expected,
                           const std::string& found) {
  throw Invalid(path.string() + ": damaged: expected " + expected + ", found " + found +
                ". Take another --directory; or move this file away, then `muster run` begins the "
                "job anew here, from the newest checkpoint if there is one");
}

struct Field {
  const char* name;
  bool (Json::*is)() const;
  const char* expected;
};
constexpr Field kFields[] = {{"name", &Json::is_string, "a string"},
                             {"uid", &Json::is_string, "a string"},
                             {"generation", &Json::is_number_integer, "an integer"},
                             {"ports", &Json::is_object, "an object of integers"},
                             {"workingDirectory", &Json::is_string, "a string"},
                             {"wallSeconds", &Json::is_number, "a number"},
                             {"replicas", &Json::is_array, "a list"}};

void check(const fs::path& path, const Json& value) {
  if (value.is_discarded()) not_ours(path, "the JSON that `muster run` wrote", "something else");
  if (!value.is_object()) not_ours(path, "an object", describe(value));
  for (const auto& [name, is, expected] : kFields) {
    const Json& found = member(value, name);
    if (!(found.*is)()) {
      not_ours(path, name + std::string(" to be ") + expected,
               found.is_null() ? "none" : describe(found));
    }
  }
  for (const auto& [name, port] : value["ports"].items()) {
    const bool fits = port.is_number_integer() && port > 0 && port < 65536;
    if (!fits) not_ours(path, child_path("ports", name) + " to be a port", describe(port));
  }
}

constexpr const char* kPhases[] = {"pending", "running", "succeeded", "failed"};

Json optional_time(const std::optional<api::Time>& time) {
  return time ? Json(api::format_time(*time)) : Json(nullptr);
}

Json to_json(const plan::ObservedReplica& replica) {
  Json value;
  value["role"] = api::name_of(replica.role);
  value["index"] = replica.index;
  value["run"] = replica.run;
  value["attempt"] = replica.attempt;
  value["uid"] = replica.uid;
  value["phase"] = kPhases[static_cast<int>(replica.phase)];
  value["deleting"] = replica.deleting;
  value["exitCode"] = replica.exit_code ? Json(*replica.exit_code) : Json(nullptr);
  value["reason"] = replica.reason;
  value["lastLine"] = replica.last_line;
  value["started"] = optional_time(replica.started);
  value["finished"] = optional_time(replica.finished);
  return value;
}

plan::ObservedReplica to_replica(const Json& value) {
  plan::ObservedReplica replica;
  replica.role = api::role_of(string_or(value, "role", "")).value_or(api::Role::worker);
  replica.index = static_cast<int>(integer_or(value, "index", 0));
  replica.run = static_cast<int>(integer_or(value, "run", 0));
  replica.attempt = static_cast<int>(integer_or(value, "attempt", 0));
  replica.uid = string_or(value, "uid", "");
  const std::string phase = string_or(value, "phase", "");
  for (int i = 0; i < 4; ++i) {
    if (phase == kPhases[i]) replica.phase = static_cast<plan::Phase>(i);
  }
  if (const Json& code = member(value, "exitCode"); code.is_number_integer()) {
    replica.exit_code = code.get<int>();
  }
  replica.deleting = bool_or(value, "deleting", false);
  replica.reason = string_or(value, "reason", "");
  replica.last_line = string_or(value, "lastLine", "");
  replica.started = api::parse_time(string_or(value, "started", ""));
  replica.finished = api::parse_time(string_or(value, "finished", ""));
  return replica;
}

}  // namespace

std::string replica_name(const api::TrainingJob& job, api::Role role, int index) {
  return api::role_name(job, role) + "-" + std::to_string(index);
}

JobDirectory::JobDirectory(fs::path root) : root_(fs::absolute(root).lexically_normal()) {
  if (!root_.has_filename()) root_ = root_.parent_path();  // "dir/" is "dir"
}

std::optional<JobState> load_state(const JobDirectory& directory) {
  const fs::path path = directory.state();
  if (!is_there(path)) return std::nullopt;
  const Json value = Json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
  check(path, value);
  JobState state;
  state.name = value["name"].get<std::string>();
  state.uid = value["uid"].get<std::string>();
  state.generation = value["generation"].get<int64_t>();
  state.addresses.ports = value["ports"].get<std::map<std::string, int>>();
  for (const auto& [name, ip] : member(value, "hosts").items())
    if (ip.is_string()) state.addresses.hosts[name] = ip.get<std::string>();
  state.working_directory = value["workingDirectory"].get<std::string>();
  state.resume = string_or(value, "resume", "");
  state.wall_seconds = value["wallSeconds"].get<double>();
  for (const Json& replica : value["replicas"]) state.replicas.push_back(to_replica(replica));
  state.status = member(value, "status");
  const auto number = [&](const char* name, int least) -> std::optional<int> {
    const int64_t found = integer_or(value, name, least - 1);
    return found < least ? std::nullopt : std::optional(static_cast<int>(found));
  };
  state.threads = number("threads", 1);
  state.workers = number("workers", 0);
  return state;
}

void save_state(const JobDirectory& directory, const JobState& state) {
  Json value;
  value["name"] = state.name;
  value["uid"] = state.uid;
  value["generation"] = state.generation;
  value["ports"] = state.addresses.ports;
  if (!state.addresses.hosts.empty()) value["hosts"] = state.addresses.hosts;
  value["workingDirectory"] = state.working_directory;
  value["resume"] = state.resume;
  value["wallSeconds"] = state.wall_seconds;
  value["replicas"] = Json::array();
  for (const plan::ObservedReplica& replica : state.replicas) {
    value["replicas"].push_back(to_json(replica));
  }
  value["status"] = state.status;
  if (state.threads) value["threads"] = *state.threads;
  if (state.workers) value["workers"] = *state.workers;
  const std::string text = value.dump(2, ' ', false, Json::error_handler_t::replace);
  write_file_atomically(directory.state(), text + "\n");
}

}  // namespace muster::local
