#include "operator/api/training_job.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/job/checkpoint_request.h"
#include "operator/api/status.h"
#include "operator/api/templates.h"

namespace muster::api {

namespace {

int count_or(const Json& value, const char* key, int fallback) {
  return static_cast<int>(integer_or(value, key, fallback));
}

std::optional<int64_t> optional_integer(const Json& value, const char* key) {
  const Json& found = member(value, key);
  return found.is_number_integer() ? std::optional<int64_t>(found.get<int64_t>()) : std::nullopt;
}

ReplicaSpec to_replica_spec(const Json& value) {
  ReplicaSpec spec;
  spec.replicas = count_or(value, "replicas", 1);
  spec.restart_policy = string_or(value, "restartPolicy", "OnFailure") == "Never"
                            ? RestartPolicy::never
                            : RestartPolicy::on_failure;
  spec.replication = count_or(value, "replication", 1);
  const Json& pod_template = member(value, "template");
  spec.pod_template = pod_template.is_object() ? pod_template : Json::object();
  return spec;
}

FailureAction to_action(const std::string& name) {
  if (name == "RestartJob") return FailureAction::restart_job;
  if (name == "FailJob") return FailureAction::fail_job;
  return name == "Ignore" ? FailureAction::ignore : FailureAction::restart_replica;
}

FailureRule to_rule(const Json& value) {
  FailureRule rule;
  for (const Json& code : member(value, "onExitCodes"))
    rule.on_exit_codes.push_back(code.get<int>());
  for (const Json& reason : member(value, "onReason")) {
    rule.on_reasons.push_back(reason.get<std::string>());
  }
  for (const Json& role : member(value, "roles")) {
    if (const auto known = role_of(role.get<std::string>())) rule.roles.push_back(*known);
  }
  rule.action = to_action(string_or(value, "action", ""));
  return rule;
}

RunPolicy to_run_policy(const Json& value) {
  RunPolicy policy;
  policy.backoff_limit = count_or(value, "backoffLimit", policy.backoff_limit);
  policy.active_deadline_seconds = optional_integer(value, "activeDeadlineSeconds");
  policy.ttl_seconds_after_finished = optional_integer(value, "ttlSecondsAfterFinished");
  const std::string clean = string_or(value, "cleanPodPolicy", "Running");
  policy.clean_pod_policy = clean == "All"    ? CleanPodPolicy::all
                            : clean == "None" ? CleanPodPolicy::none
                                              : CleanPodPolicy::running;
  policy.evaluator_timeout_seconds =
      integer_or(value, "evaluatorTimeoutSeconds", policy.evaluator_timeout_seconds);
  return policy;
}

std::optional<Elastic> to_elastic(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  const bool per_replica = string_or(value, "batch", "global") == "perReplica";
  return Elastic{count_or(value, "minReplicas", 1), count_or(value, "maxReplicas", 1),
                 per_replica ? ElasticBatch::per_replica : ElasticBatch::global};
}

// Replaces `devices: auto` by a number.
void read_devices(TrainingJob& job) {
  if (!job.training.is_object() || member(job.training, "devices") != kAllDevices) return;
  job.all_devices = string_or(job.training, "device", "auto") != "cpu";
  job.training["devices"] = 1;
  for (const Role role : {Role::chief, Role::worker}) {
    if (!job.replicas.contains(role)) continue;
    const int asked = asked_gpus(counting_container(job, role));
    if (asked > 0) return set_devices(job, asked);
  }
}

DecidedBy to_decided_by(const Json& spec, const TrainingJob& job) {
  const std::string by = string_or(member(spec, "successPolicy"), "decidedBy", "");
  if (by == "allWorkers") return DecidedBy::all_workers;
  if (by == "workerZero") return DecidedBy::worker_zero;
  return job.replicas.count(Role::chief) != 0 ? DecidedBy::chief : DecidedBy::all_workers;
}

void read_replicas(const Json& replica_specs, TrainingJob& job) {
  if (!replica_specs.is_object()) return;
  for (const auto& [name, value] : replica_specs.items()) {
    const auto role = role_of(name);
    if (!role || !value.is_object()) continue;
    job.replicas[*role] = to_replica_spec(value);
    if (name == "master") job.says_master = true;
  }
}

void read_metadata(const Json& metadata, TrainingJob& job) {
  job.name = string_or(metadata, "name", "");
  job.name_space = string_or(metadata, "namespace", job.name_space);
  job.uid = string_or(metadata, "uid", "");
  job.resource_version = string_or(metadata, "resourceVersion", "");
  job.generation = integer_or(metadata, "generation", 1);
  job.created = parse_time(string_or(metadata, "creationTimestamp", ""));
  job.checkpoint_request =
      counted_request(string_or(member(metadata, "annotations"), kCheckpointAnnotation, ""));
  job.deleting = member(metadata, "deletionTimestamp").is_string();
  for (const Json& owner : member(metadata, "ownerReferences"))
    if (bool_or(owner, "controller", false) && string_or(owner, "kind", "") == "TFJob" &&
        string_or(owner, "apiVersion", "").starts_with("kubeflow.org/"))
      job.tfjob = {string_or(owner, "name", ""), string_or(owner, "uid", "")};
}

void read_spec(const Json& spec, TrainingJob& job) {
  job.suspend = bool_or(spec, "suspend", false);
  job.managed_by = string_or(spec, "managedBy", job.managed_by);
  job.strategy = string_or(spec, "strategy", job.strategy);
  job.training = member(spec, "training");
  job.storage_mount_path = string_or(member(spec, "storage"), "mountPath", job.storage_mount_path);
  if (const Json& folder = member(member(spec, "storage"), "folder"); folder.is_string())
    job.storage_folder = folder.get<std::string>();
  job.storage_adopt = string_or(member(spec, "storage"), "adopt", "");
  job.storage_volume = member(member(spec, "storage"), "volume");
  job.transport = string_or(member(spec, "security"), "transport", "tls") == "none"
                      ? Transport::none
                      : Transport::tls;
  read_replicas(member(spec, "replicaSpecs"), job);
  read_devices(job);
  job.decided_by = to_decided_by(spec, job);
  for (const Json& rule : member(member(spec, "failurePolicy"), "rules")) {
    job.failure_rules.push_back(to_rule(rule));
  }
  job.elastic = to_elastic(member(spec, "elastic"));
  job.enable_dynamic_worker = bool_or(spec, "enableDynamicWorker", false);
  job.startup_order = string_or(member(spec, "startupPolicy"), "order", "Any") == "InOrder"
                          ? StartupOrder::in_order
                          : StartupOrder::any;
  job.scheduling_policy = member(spec, "schedulingPolicy");
  job.run_policy = to_run_policy(member(spec, "runPolicy"));
}

}  // namespace

void set_devices(TrainingJob& job, int devices) {
  if (job.all_devices) job.training["devices"] = std::clamp(devices, 1, kMostDevices);
}

TrainingJob to_training_job(const Json& value) {
  TrainingJob job;
  read_metadata(member(value, "metadata"), job);
  read_spec(member(value, "spec"), job);
  job.status = to_job_status(member(value, "status"));
  return job;
}

const char* name_of(Role role) {
  switch (role) {
    case Role::ps:
      return "ps";
    case Role::chief:
      return "chief";
    case Role::worker:
      return "worker";
    case Role::evaluator:
      break;
  }
  return "evaluator";
}

std::string role_name(const TrainingJob& job, Role role) {
  return role == Role::chief && job.says_master ? "master" : name_of(role);
}

std::string folder_of(const TrainingJob& job) {
  if (job.storage_folder) return *job.storage_folder;
  if (job.status.storage_folder) return *job.status.storage_folder;
  return job.status.conditions.empty() ? job.name_space + "-" + job.name : ".";
}

TrainingLength to_training_length(const Json& value) {
  const auto number = [&](const char* name) -> std::optional<int64_t> {
    const Json& found = member(value, name);
    return found.is_number_integer() ? std::optional(found.get<int64_t>()) : std::nullopt;
  };
  return {number("epochs"), number("steps")};
}

std::optional<TrainingLength> length_of(const TrainingJob& job) {
  if (job.training.is_null()) return std::nullopt;
  return to_training_length(job.training);
}

bool ends_with_its_pod(const Json& volume) {
  return given(volume, "emptyDir") || given(volume, "ephemeral");
}

bool loses_files(const TrainingJob& job) {
  const bool is_kept = job.storage_volume.is_object() && !ends_with_its_pod(job.storage_volume);
  return !job.training.is_null() && !is_kept;
}

bool keeps_checkpoints(const TrainingJob& job) {
  return !job.training.is_null() && !loses_files(job);
}

bool workers_may_change(const TrainingJob& job) {
  return job.elastic || (job.enable_dynamic_worker && job.training.is_null());
}

int replicas_of(const TrainingJob& job) {
  int replicas = 0;
  for (const auto& [role, spec] : job.replicas) replicas += spec.replicas;
  return replicas;
}

int most_replicas(const TrainingJob& job, Role role) {
  const auto spec = job.replicas.find(role);
  if (spec == job.replicas.end()) return 0;
  return role == Role::worker && job.elastic ? job.elastic->max_replicas : spec->second.replicas;
}

std::optional<Role> role_of(const std::string& name) {
  for (const Role role : kRoles) {
    if (name == name_of(role)) return role;
  }
  return name == "master" ? std::optional<Role>(Role::chief) : std::nullopt;
}

}  // namespace muster::api
