#include <fmt/format.h>

#include "common/documents/json.h"
#include "common/documents/json_file.h"
#include "common/error.h"
#include "common/exit_code.h"
#include "common/program/output.h"
#include "common/system/file.h"
#include "operator/api/status.h"
#include "operator/cmd/job/job_source.h"
#include "operator/cmd/job/stored_job.h"
#include "operator/cmd/local/commands.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/summary.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/local/run_lock.h"

namespace muster::cmd {

namespace {

using local::ProcessIdentity;
using plan::ObservedReplica;
using plan::Phase;

const ObservedReplica* newest(const local::JobState& state, api::Role role, int index) {
  const ObservedReplica* found = nullptr;
  for (const ObservedReplica& replica : state.replicas) {
    if (replica.role != role || replica.index != index) continue;
    if (found == nullptr || replica.attempt > found->attempt) found = &replica;
  }
  return found;
}

std::string phase_text(const ObservedReplica* replica, bool job_runs) {
  if (replica == nullptr) return "stopped";
  switch (replica->phase) {
    case Phase::succeeded:
      return "succeeded";
    case Phase::failed:
      return replica->deleting ? "stopped" : "failed";
    case Phase::pending:
    case Phase::running:
      break;
  }
  return job_runs ? "running" : "lost";
}

Json pid_of(const local::JobDirectory& directory, const std::string& name) {
  const std::filesystem::path file = directory.pid_file(name);
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return nullptr;
  try {
    const auto identity = ProcessIdentity::parse(read_file(file));
    return identity && local::is_alive(*identity) ? Json(identity->pid) : Json(nullptr);
  } catch (const Invalid&) {
    return nullptr;  // the run has ended meanwhile
  }
}

Json replica_json(const StoredJob& stored, const api::ReplicaRecord& record, bool job_runs) {
  const std::string name = local::replica_name(stored.job, record.role, record.index);
  const ObservedReplica* replica = newest(stored.state, record.role, record.index);
  const std::string http = name + "/http";
  Json value;
  value["name"] = name;
  value["state"] = record.succeeded ? "succeeded" : phase_text(replica, job_runs);
  value["pid"] = pid_of(stored.directory, name);
  value["attempt"] = record.attempt;
  value["restarts"] = record.restarts;
  value["exitCode"] = record.exit_code ? Json(*record.exit_code) : Json(nullptr);
  const auto host = stored.state.addresses.hosts.find(name);
  if (host != stored.state.addresses.hosts.end()) value["address"] = host->second;
  value["http"] = stored.state.addresses.ports.contains(http)
                      ? Json(stored.state.addresses.of(http))
                      : Json(nullptr);
  value["log"] = stored.directory.log(name).string();
  return value;
}

// Whether no replica runs under this index any more, and none should.
bool is_scaled_away(const StoredJob& stored, const api::ReplicaRecord& record) {
  const auto spec = stored.job.replicas.find(record.role);
  const int wanted = spec == stored.job.replicas.end() ? 0 : spec->second.replicas;
  const ObservedReplica* replica = newest(stored.state, record.role, record.index);
  return record.index >= wanted && (replica == nullptr || !is_live(*replica));
}

Json status_json(const StoredJob& stored) {
  const std::optional<ProcessIdentity> runner = local::RunLock::holder(stored.directory);
  const std::string state = state_of(stored.job.status);
  Json value;
  value["name"] = stored.job.name;
  value["directory"] = stored.directory.root().string();
  value["state"] = state == "Running" && !runner ? "Interrupted" : state;
  value["runner"] = runner ? Json(runner->pid) : Json(nullptr);
  value["wallSeconds"] = stored.state.wall_seconds;
  value["progress"] = stored.job.status.progress;
  value["replicas"] = Json::array();
  for (const api::ReplicaRecord& record : stored.job.status.records) {
    if (is_scaled_away(stored, record)) continue;
    value["replicas"].push_back(replica_json(stored, record, runner.has_value()));
  }
  value["status"] = stored.state.status;
  value["summary"] = read_json_or_null(stored.directory.summary());
  return value;
}

void print_status(const StoredJob& stored, const Json& value) {
  const std::string state = value["state"];
  print(stdout, "{}: {}{}\n", stored.job.name, state,
        value["runner"].is_null() ? "" : ", run by process " + value["runner"].dump());
  print(stdout, "  directory  {}\n", shown(stored.directory.root()));
  print(stdout, "  progress   {}\n", progress_line(stored.job, stored.job.status.progress));
  if (const std::string gpus = gpus_text(stored.job.status); !gpus.empty())
    print(stdout, "  GPUs       {}\n", gpus);
  if (state == "Succeeded") {
    const Json summary = with_shown_files(value["summary"], stored.directory);
    print(stdout, "\n{}", summary_rows(summary));
  }
  print(stdout, "\n  {:<14}{:<11}{:>8}{:>10}{:>11}  {}\n", "REPLICA", "STATE", "PID", "RESTARTS",
        "LAST EXIT", "HTTP");
  for (const Json& replica : value["replicas"]) {
    const auto text = [&](const char* key) {
      return replica[key].is_null() ? std::string("-") : replica[key].dump();
    };
    print(stdout, "  {:<14}{:<11}{:>8}{:>10}{:>11}  {}\n", replica["name"].get<std::string>(),
          replica["state"].get<std::string>(), text("pid"), text("restarts"), text("exitCode"),
          string_or(replica, "http", "-"));
  }
  print(stdout, "\n{}", conditions_text(stored.job.status));
  const char* how = state == "Interrupted" || state == "Suspended" ? "resume"
                    : state == "Failed"                            ? "go on"
                                                                   : nullptr;
  if (how != nullptr && value["runner"].is_null()) {
    const std::string& known = stored.state.resume;  // a job of an older release has none
    print(
        stdout, "\n  To {}: {}{}\n", how,
        known.empty() ? "muster run JOB.yaml --directory " + shown(stored.directory.root()) : known,
        state == "Failed" ? " --retry" : "");
  }
}

}  // namespace

int show_status(const std::filesystem::path& path, const std::string& output) {
  const StoredJob stored = load_stored_job(path);
  const Json value = status_json(stored);
  if (output == "text") {
    print_status(stored, value);
  } else {
    print_value(value, output);
  }
  return kSuccess;
}

}  // namespace muster::cmd
