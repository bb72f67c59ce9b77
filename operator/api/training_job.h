#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/documents/document.h"
#include "common/documents/schema.h"

namespace muster::api {

// TrainingJob muster.dev/v1alpha1 as C++ values. Pod templates and the `training` block stay JSON.

using Time = std::chrono::sys_time<std::chrono::milliseconds>;

enum class Role { ps, chief, worker, evaluator };  // in startup order; `master` reads as chief
inline constexpr Role kRoles[] = {Role::ps, Role::chief, Role::worker, Role::evaluator};

enum class RestartPolicy { on_failure, never };
enum class DecidedBy { chief, all_workers, worker_zero };
enum class FailureAction { restart_replica, restart_job, fail_job, ignore };
enum class StartupOrder { any, in_order };
enum class ElasticBatch { global, per_replica };
enum class Transport { tls, none };                // how replicas connect to each other
enum class CleanPodPolicy { running, all, none };  // the replicas removed at the end

// The value of spec.managedBy for a job that Muster acts on.
inline constexpr const char* kManagedByMuster = "muster.dev/operator";

// The annotation that requests a checkpoint. A user sets it on a job in a cluster; the operator
// sets it on the pod of the job's leader. Each new value is one request.
inline constexpr const char* kCheckpointAnnotation = "muster.dev/checkpoint";

struct ReplicaSpec {
  int replicas = 1;
  RestartPolicy restart_policy = RestartPolicy::on_failure;
  int replication = 1;  // ps only
  Json pod_template;    // PodTemplateSpec as the user wrote it; {} where left out
};

struct FailureRule {                    // the first rule that matches decides
  std::vector<int> on_exit_codes;       // empty: not by code
  std::vector<std::string> on_reasons;  // OOMKilled, Evicted, ...; empty: not by reason
  std::vector<Role> roles;              // empty: every role
  FailureAction action = FailureAction::restart_replica;
};

struct RunPolicy {
  int backoff_limit = 6;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int64_t> ttl_seconds_after_finished;
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::running;
  int64_t evaluator_timeout_seconds = 600;
};

// Limits of an elastic job, which may change its number of workers while it runs.
struct Elastic {
  int min_replicas = 1;  // workers, as in the manifest; a chief is beside them
  int max_replicas = 1;
  ElasticBatch batch = ElasticBatch::global;
};

struct Condition {
  std::string type;     // Accepted, Running, Stalled, Restarting, Suspended, SuccessCriteriaMet,
                        // FailureTarget, Succeeded, Failed, Finished
  bool status = false;  // false with the reason Unknown: not known
  std::string reason;   // one CamelCase word, names the cause
  std::string message;  // a sentence
  Time last_transition{};
  bool operator==(const Condition&) const = default;
};

struct ReplicaStatus {  // per role, shown
  int ready = 0, active = 0, succeeded = 0, failed = 0, restarts = 0;
  bool operator==(const ReplicaStatus&) const = default;
};

// The state of one replica index that must be remembered so that each of its restarts is counted
// once.
struct ReplicaRecord {
  Role role = Role::worker;
  int index = 0;
  int attempt = 0;   // number of the replica that exists or is to be created; never reused within
                     // the job, even after a new run or scaling
  int restarts = 0;  // for failures that count; one round of failures uses up one
                     // restart of backoffLimit
  bool in_round = false;          // it has failed in the current round of failures
  std::optional<Time> failed_at;  // the first failure in the current round
  bool succeeded = false;         // it is done and never runs again
  bool failed = false;            // it ended without success and never runs again
  std::optional<int> exit_code;   // exit code of the last ended attempt
  Time not_before{};              // back-off: earliest time of the next creation
  int failures_in_row = 0;        // restarts since it last ran well; decides the next back-off
  // Restarts of the current attempt that are counted in `restarts` or judged.
  int restarts_in_place = 0;
  std::string replacing;  // UID of a living replica that is being removed: its end is counted
                          // already (CrashLoopBackOff) or must not be counted (an elastic job was
                          // scaled down); empty: none
  // Nodes where a GPU of this replica failed, the most recent last. The replica should run on
  // another node.
  std::vector<std::string> avoided_nodes;
  bool operator==(const ReplicaRecord&) const = default;
};

// How the job's replicas know each other.
struct Security {
  std::string keys;     // name of the Secret or folder with the replicas' key pair; empty: replicas
                        // trust every peer
  int restart_run = 0;  // the JobStatus::restart_run for which the key pair was made
  bool operator==(const Security&) const = default;
};

// How long a job trains, by its spec.
struct TrainingLength {
  std::optional<int64_t> epochs;  // exactly one of the two
  std::optional<int64_t> steps;
  bool operator==(const TrainingLength&) const = default;
};

struct JobStatus {
  int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::optional<Time> start_time;  // reset by resuming
  std::optional<Time> completion_time;
  std::map<Role, ReplicaStatus> replica_statuses;
  std::vector<ReplicaRecord> records;
  // Ended replicas that still exist and whose end is in `records`.
  std::vector<std::string> counted_uids;
  int restarts = 0;  // restarts that count against backoffLimit (the evaluator's do not)
  // Why replicas were restarted, since the job was made: the restarts in `records`, by reason.
  std::map<Role, std::map<std::string, int>> restart_reasons;
  int run = 0;  // raised by RestartJob and by resuming; replicas of an older run leave
  // Number of replicas of each role in TF_CONFIG at the last plan; empty: no plan yet.
  std::map<Role, int> group;
  int restart_run = 0;  // the run begun by the last RestartJob, or by more training of a job that
                        // had ended; 0: none. Successes of earlier runs are void
  // When the deciding replicas finished; starts the evaluator's timeout.
  std::optional<Time> final_checkpoint_time;
  // The spec's length of training when the job succeeded. None: the job has not succeeded, has no
  // `training`, or succeeded under an operator that is older than this field.
  std::optional<TrainingLength> trained_to;
  std::optional<std::string> storage_folder;  // none for a job that is older than this field
  std::optional<Security> security;  // none: no replica has peers, or the job is older than this
  std::string cause;  // why replicas are not ready, in the words of the component that reports it;
                      // "": not known
  Json progress;      // as status.progress of the schema; null before the first report
  Json goodput;       // as status.goodput of the schema; null before the first write. Nothing is
                      // decided by it, and it alone is no reason to write a status
  Json results;       // results of the training; null before its leader has succeeded

  bool operator==(const JobStatus&) const = default;
  const Condition* find(const std::string& type) const;
  // Returns the name of the replicas' key pair; empty: the replicas trust every peer.
  std::string keys() const { return security ? security->keys : ""; }
  bool is_true(const std::string& type) const;
};

// The TFJob (kubeflow.org/v1) that a TrainingJob runs and belongs to.
struct OwnerTfJob {
  std::string name;  // empty: none
  std::string uid;
};

// Why the cluster lets no replica of a job run now although its manifest wants them: it waits in a
// queue.
struct Hold {
  std::string reason;   // one CamelCase word: Queued, Preempted, ...
  std::string message;  // a sentence
  bool operator==(const Hold&) const = default;
};

struct TrainingJob {
  std::string name;
  std::string name_space = "default";
  std::string uid;
  int64_t generation = 1;
  std::optional<Time> created;
  // Version of the object that was read; only the cluster can interpret it.
  std::string resource_version;
  bool deleting = false;
  OwnerTfJob tfjob;
  std::optional<Hold> hold;        // only the cluster sets it
  std::string checkpoint_request;  // value of kCheckpointAnnotation that is in effect; empty: none

  bool suspend = false;
  std::string managed_by = kManagedByMuster;
  std::string strategy = "parameterServer";
  Json training;  // null: the user's own image. `devices` in it is a number: see set_devices()
  bool all_devices = false;  // `devices: auto`, and the job may compute on GPUs
  std::string storage_mount_path = "/muster";
  std::optional<std::string> storage_folder;  // as the manifest says; see folder_of()
  std::string storage_adopt;                  // "namespace/name"; empty: nobody's
  Json storage_volume;
  Transport transport = Transport::tls;
  std::map<Role, ReplicaSpec> replicas;
  bool says_master = false;  // the manifest named the chief `master`; TF_CONFIG does too
  DecidedBy decided_by = DecidedBy::chief;  // resolved, never "default"
  std::vector<FailureRule> failure_rules;
  std::optional<Elastic> elastic;
  bool enable_dynamic_worker = false;  // the user's own programs accept workers that come and go
  StartupOrder startup_order = StartupOrder::any;
  Json scheduling_policy;
  RunPolicy run_policy;

  JobStatus status;
};

// Returns "ps", "chief", "worker" or "evaluator".
const char* name_of(Role role);
// Reads a name that name_of() returns, or "master"; returns nothing for another name.
std::optional<Role> role_of(const std::string& name);
// Returns the role's name in the job's manifest: "master" for the chief if the manifest says so.
std::string role_name(const TrainingJob& job, Role role);

// Returns the job's folder below the mount path of its storage; "." for the mount path itself. The
// manifest decides; without a value there, the folder that was chosen when the job was first seen.
std::string folder_of(const TrainingJob& job);

// Reads `epochs` and `steps` of an object.
TrainingLength to_training_length(const Json& value);
// Returns nothing for a job without `training`.
std::optional<TrainingLength> length_of(const TrainingJob& job);

// Whether the job, which runs in a cluster, has checkpoints that outlive its pods.
bool keeps_checkpoints(const TrainingJob& job);
// Whether a volume (as in a pod's spec.volumes) belongs to one pod and ends with it: emptyDir, and
// a claim that is made for the pod.
bool ends_with_its_pod(const Json& volume);
// Whether the files that a training writes are lost when its pods go.
bool loses_files(const TrainingJob& job);

// Whether workers come and go while the others keep running, each with the TF_CONFIG it began with.
bool workers_may_change(const TrainingJob& job);

// Returns the number of replicas of all roles together.
int replicas_of(const TrainingJob& job);
// Returns the largest number of replicas a role can have: for workers of an elastic job,
// maxReplicas.
int most_replicas(const TrainingJob& job, Role role);

// The value of `devices` that means: all devices of a replica.
inline constexpr const char* kAllDevices = "auto";
inline constexpr int kMostDevices = 64;  // as the schema allows
// Sets the number of devices of each replica if job.all_devices. Call it once the machines are
// known; until then the number is that of the GPUs that the templates ask for, or one.
void set_devices(TrainingJob& job, int devices);

// Converts a manifest. Precondition: validate() (validate.h) found nothing. Also reads the status,
// if any.
TrainingJob to_training_job(const Json& value);

}  // namespace muster::api
