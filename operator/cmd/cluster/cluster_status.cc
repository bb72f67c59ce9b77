#include "operator/cmd/cluster/cluster_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/documents/json.h"
#include "operator/api/overview.h"
#include "operator/api/status.h"
#include "operator/cmd/show/attention.h"
#include "operator/cmd/show/display.h"
#include "operator/cmd/show/summary.h"
#include "operator/cmd/show/summary_text.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/describe.h"

namespace muster::cmd {

namespace {

using plan::ObservedReplica;
using plan::Phase;

// A replica, and the newest of its pods.
struct Replica {
  std::string name;
  api::ReplicaRecord record;
  const kube::Pod* pod = nullptr;
  std::optional<ObservedReplica> seen;
};

api::ReplicaRecord record_of(const api::TrainingJob& job, api::Role role, int index) {
  for (const api::ReplicaRecord& record : job.status.records) {
    if (record.role == role && record.index == index) return record;
  }
  api::ReplicaRecord none;
  none.role = role;
  none.index = index;
  return none;
}

Replica look_at(const ClusterJob& seen, api::Role role, int index) {
  Replica replica{plan::describe(seen.job, role, index), record_of(seen.job, role, index), nullptr,
                  std::nullopt};
  for (const kube::Pod& pod : seen.pods) {
    const std::optional<ObservedReplica> observed = kube::observe(pod);
    if (!observed || observed->role != role || observed->index != index) continue;
    if (replica.seen && replica.seen->attempt > observed->attempt) continue;
    replica.pod = &pod;
    replica.seen = observed;
  }
  return replica;
}

std::vector<Replica> replicas_of(const ClusterJob& seen) {
  std::vector<Replica> replicas;
  for (const auto& [role, spec] : seen.job.replicas) {
    for (int index = 0; index < spec.replicas; ++index) {
      replicas.push_back(look_at(seen, role, index));
    }
  }
  return replicas;
}

std::string state_of(const Replica& replica) {
  if (replica.record.succeeded) return "succeeded";
  if (!replica.seen) return replica.record.failed ? "failed" : "no pod";
  if (left_on_request(*replica.seen)) return "stopped";
  switch (replica.seen->phase) {
    case Phase::succeeded:
      return "succeeded";
    case Phase::failed:
      return "failed";
    case Phase::pending:
      return replica.seen->deleting ? "leaving" : "pending";
    case Phase::running:
      return replica.seen->deleting ? "leaving" : "running";
  }
  return "";
}

Json summary_json(const ClusterJob& seen) {
  if (seen.job.status.results.is_null()) return nullptr;
  std::vector<ObservedReplica> replicas;
  for (const kube::Pod& pod : seen.pods) {
    if (auto observed = kube::observe(pod)) replicas.push_back(std::move(*observed));
  }
  return summary_of(seen.job, replicas);
}

// Returns why a replica does not run: "Unschedulable: 0/3 nodes are available: ..."; "" if it is
// not known.
std::string reason_of(const Replica& replica) {
  if (!replica.seen || replica.record.succeeded) return "";
  if (replica.seen->phase != Phase::failed) return plan::describe_obstacle(*replica.seen);
  const std::string& reason = replica.seen->reason;
  const std::string& words = replica.seen->last_line;
  return reason + (reason.empty() || words.empty() ? "" : ": ") + words;
}

std::optional<int> exit_code_of_replica(const Replica& replica) {
  if (replica.seen && replica.seen->exit_code) return replica.seen->exit_code;
  return replica.record.exit_code;
}

Json replica_json(const Replica& replica) {
  const std::optional<int> code = exit_code_of_replica(replica);
  const std::string reason = reason_of(replica);
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  Json value;
  value["name"] = replica.name;
  value["state"] = state_of(replica);
  value["ready"] = replica.seen && replica.seen->ready;
  value["restarts"] = replica.record.restarts;
  value["exitCode"] = code ? Json(*code) : Json();
  value["attempt"] = replica.record.attempt;
  value["pod"] = replica.pod == nullptr ? Json() : Json(replica.pod->meta.name);
  value["node"] = replica.pod == nullptr ? Json() : text(replica.pod->node);
  value["created"] = replica.pod == nullptr || !replica.pod->meta.created
                         ? Json()
                         : Json(api::format_time(*replica.pod->meta.created));
  value["reason"] = text(reason);
  return value;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

// Returns a left-aligned table with two spaces between columns.
std::string table(const std::vector<std::vector<std::string>>& rows, const char* indent) {
  std::vector<size_t> widths;
  for (const std::vector<std::string>& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line = indent;
    for (size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    text += line + row.back() + "\n";
  }
  return text;
}

std::string replicas_table(const std::vector<Replica>& replicas, api::Time now) {
  std::vector<std::vector<std::string>> rows = {
      {"REPLICA", "STATE", "READY", "RESTARTS", "LAST EXIT", "AGE", "NODE"}};
  for (const Replica& replica : replicas) {
    const std::optional<int> code = exit_code_of_replica(replica);
    const bool pod = replica.pod != nullptr;
    rows.push_back({replica.name, state_of(replica),
                    !pod ? "-" : (replica.seen->ready ? "yes" : "no"),
                    std::to_string(replica.record.restarts), code ? std::to_string(*code) : "-",
                    pod ? age_text(replica.pod->meta.created, now) : "-",
                    pod ? or_dash(replica.pod->node) : "-"});
  }
  return table(rows, "  ");
}

}  // namespace

std::optional<api::Time> created_of(const Json& object) {
  return api::parse_time(string_or(member(object, "metadata"), "creationTimestamp", ""));
}

std::string age_text(const std::optional<api::Time>& since, api::Time now) {
  if (!since) return "-";
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - *since).count();
  if (seconds < 120) return fmt::format("{}s", std::max<int64_t>(seconds, 0));
  if (seconds < 2 * 3600) return fmt::format("{}m", seconds / 60);
  if (seconds < 48 * 3600) return fmt::format("{}h", seconds / 3600);
  return fmt::format("{}d", seconds / (24 * 3600));
}

std::string status_text(const ClusterJob& seen, api::Time now) {
  const api::TrainingJob& job = seen.job;
  const std::string ready = api::ready_text(job.status);
  std::string text = fmt::format("{}: {}\n", job.name, api::state_word(job.status));
  text += fmt::format("  namespace  {}\n", job.name_space);
  text += fmt::format("  age        {}\n", age_text(seen.created, now));
  text += fmt::format("  ready      {}\n", or_dash(ready));
  text += fmt::format("  restarts   {} of {}\n", job.status.restarts, job.run_policy.backoff_limit);
  text += fmt::format("  progress   {}\n", progress_line(job, job.status.progress));
  if (seen.status_written && !job.status.is_true("Finished"))
    text += fmt::format("  as of      {} ago, when the operator wrote the status last\n",
                        age_text(seen.status_written, now));
  if (const std::string time = time_text(job.status, now); !time.empty())
    text += "  time       " + time + "\n";
  if (const std::string slow = straggler_text(job); !slow.empty())
    text += "  slowest    " + slow + "\n";
  if (const std::string gpus = gpus_text(job.status); !gpus.empty())
    text += "  GPUs       " + gpus + "\n";
  text += "\n";
  if (seen.changed && is_unattended(job) && now - *seen.changed >= kOperatorTakes) {
    text += "  " + unattended_text(job) + "\n\n";
  }
  if (const Json summary = summary_json(seen); !summary.is_null()) {
    text += summary_rows(summary) + "\n";
  }
  const std::vector<Replica> replicas = replicas_of(seen);
  text += replicas_table(replicas, now);
  std::string reasons;
  for (const Replica& replica : replicas) {
    const std::string reason = reason_of(replica);
    if (!reason.empty()) reasons += fmt::format("  {}: {}\n", replica.name, reason);
  }
  const std::string conditions = conditions_text(job.status);
  const bool told = (reasons + conditions).find(job.status.cause) != std::string::npos;
  const std::string cause = told ? "" : "  cause: " + job.status.cause + "\n";
  for (const std::string& part : {reasons, cause, conditions}) {
    if (!part.empty()) text += "\n" + part;
  }
  return text;
}

Json status_json(const ClusterJob& seen) {
  Json value;
  value["name"] = seen.job.name;
  value["namespace"] = seen.job.name_space;
  value["state"] = api::state_word(seen.job.status);
  value["created"] = seen.created ? Json(api::format_time(*seen.created)) : Json();
  value["asOf"] = seen.status_written ? Json(api::format_time(*seen.status_written)) : Json();
  value["progress"] = seen.job.status.progress;
  value["summary"] = summary_json(seen);
  value["replicas"] = Json::array();
  for (const Replica& replica : replicas_of(seen)) {
    value["replicas"].push_back(replica_json(replica));
  }
  value["status"] = api::to_json(seen.job.status);
  return value;
}

std::string jobs_table(const std::vector<Json>& jobs, bool with_namespace, api::Time now) {
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "STATE", "READY", "STEPS", "RESTARTS", "AGE"}};
  if (with_namespace) rows[0].insert(rows[0].begin(), "NAMESPACE");
  for (const Json& object : jobs) {
    const Json& metadata = member(object, "metadata");
    const api::JobStatus status = api::to_job_status(member(object, "status"));
    std::vector<std::string> row = {
        string_or(metadata, "name", "?"), api::state_word(status),
        or_dash(api::ready_text(status)), or_dash(api::steps_text(status)),
        std::to_string(status.restarts),  age_text(created_of(object), now)};
    if (with_namespace) row.insert(row.begin(), string_or(metadata, "namespace", "?"));
    rows.push_back(std::move(row));
  }
  return table(rows, "");
}

}  // namespace muster::cmd
