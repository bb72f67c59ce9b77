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

// `may_live`: its process lives, or somebody watches over it.
std::string phase_text(const ObservedReplica* replica, bool may_live) {
  if (replica == nullptr || left_on_request(*replica)) return "stopped";
  switch (replica->phase) {
    case Phase::succeeded:
      return "succeeded";
    case Phase::failed:
      return "failed";
    case Phase::pending:
    case Phase::running:
      break;
  }
  return may_live ? "running" : "lost";
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
  value["pid"] = pid_of(stored.directory, name);
  const bool may_live = job_runs || !value["pid"].is_null();
  const bool answers = may_live && replica != nullptr && is_live(*replica);
  value["state"] = record.succeeded ? "succeeded" : phase_text(replica, may_live);
  value["attempt"] = record.attempt;
  value["restarts"] = record.restarts;
  value["exitCode"] = record.exit_code ? Json(*record.exit_code) : Json(nullptr);
  const auto host = stored.state.addresses.hosts.find(name);
  if (host != stored.state.addresses.hosts.end()) value["address"] = host->second;
  value["http"] = answers && stored.state.addresses.ports.contains(http)
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

// Removes what was true of a job that ran, and is not true after its `muster run` is gone.
void forget_the_living(StoredJob& stored) {
  api::JobStatus& status = stored.job.status;
  std::erase_if(status.conditions, [](const api::Condition& condition) {
    return condition.type == "Running" || condition.type == "Restarting" ||
           condition.type == "Stalled";
  });
  for (auto& [role, counts] : status.replica_statuses) counts.ready = counts.active = 0;
  if (status.progress.is_object())
    for (const char* field : {"examplesPerSecond", "etaSeconds", "gpus"})
      status.progress.erase(field);
  status.cause.clear();
  stored.state.status = api::to_json(status);
}

Json status_json(StoredJob& stored) {
  const std::optional<ProcessIdentity> runner = local::RunLock::holder(stored.directory);
  const std::string state = state_of(stored.job.status);
  const bool interrupted = state == "Running" && !runner;
  if (interrupted) forget_the_living(stored);
  Json value;
  value["name"] = stored.job.name;
  value["directory"] = stored.directory.root().string();
  value["state"] = interrupted ? "Interrupted" : state;
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

// Returns who runs the job, or that the process which ran it is gone; "" if it does not run.
std::string runner_text(const StoredJob& stored, const Json& value) {
  if (!value["runner"].is_null()) return ", run by process " + value["runner"].dump();
  if (value["state"] != "Interrupted") return "";
  const std::optional<ProcessIdentity> last = local::RunLock::last_holder(stored.directory);
  return fmt::format(": the `muster run` that ran the job{} is gone",
                     last ? fmt::format(" (process {})", last->pid) : "");
}

void print_status(const StoredJob& stored, const Json& value) {
  const std::string state = value["state"];
  print(stdout, "{}: {}{}\n", stored.job.name, state, runner_text(stored, value));
  print(stdout, "  directory  {}\n", shown(stored.directory.root()));
  print(stdout, "  progress   {}\n", progress_line(stored.job, stored.job.status.progress));
  if (const std::string time = time_text(stored.job.status); !time.empty())
    print(stdout, "  time       {}\n", time);
  if (const std::string slow = straggler_text(stored.job); !slow.empty())
    print(stdout, "  slowest    {}\n", slow);
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
  StoredJob stored = load_stored_job(path);
  const Json value = status_json(stored);
  if (output == "text") {
    print_status(stored, value);
  } else {
    print_value(value, output);
  }
  return kSuccess;
}

}  // namespace muster::cmd
