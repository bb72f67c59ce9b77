#include "operator/kube/pods/pod_template.h"

#include <algorithm>
#include <filesystem>

#include "common/documents/json.h"
#include "operator/api/templates.h"
#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/tfjob_pods.h"
#include "operator/plan/environment.h"
#include "operator/plan/in_place.h"

namespace muster::kube {

namespace {

constexpr int kUser = 65532;
constexpr int kUnreachableSeconds = 30;
constexpr const char* kTrainingFolder = "/etc/muster";
constexpr const char* kTrainingFile = "training.yaml";
constexpr const char* kTfConfigFile = "tf_config.json";
constexpr const char* kRequestFile = "checkpoint-request";
constexpr const char* kKeysFolder = "/etc/muster-tls";
constexpr int kReadable = 0444;
constexpr const char* kStorageVolume = "muster-storage";
constexpr const char* kTrainingVolume = "muster-training";
constexpr const char* kScratchVolume = "muster-tmp";
constexpr const char* kSharedMemoryVolume = "muster-shm";
constexpr const char* kRequestedCpu = "100m";
constexpr const char* kRequestedMemory = "256Mi";

Json toleration(const char* taint) {
  return {{"key", taint},
          {"operator", "Exists"},
          {"effect", "NoExecute"},
          {"tolerationSeconds", kUnreachableSeconds}};
}

Json variable(const std::string& name, const std::string& value) {
  return {{"name", name}, {"value", value}};
}

// Only the trainer makes folders; a user's own program gets the mount itself.
std::string storage_of(const api::TrainingJob& job) {
  const std::string folder = job.training.is_null() ? "." : api::folder_of(job);
  if (folder == ".") return job.storage_mount_path;
  return std::filesystem::path(job.storage_mount_path) / folder;
}

Json environment_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
                    const PodSettings& settings) {
  const auto address = [&](api::Role role, int index) {
    return peer_address(job, role, index, settings.cluster_domain);
  };
  const plan::ReplicaEnvironment environment =
      plan::environment(job, replica.role, replica.index, replica.attempt, address);
  Json list = Json::array();
  for (const auto& [name, value] : environment.variables) {
    if (is_tfjob(job) && plan::is_for_pytorch(name)) continue;
    if (name != "TF_CONFIG" || !is_tfjob(job)) {
      list.push_back(variable(name, value));
    } else if (api::replicas_of(job) > 1) {
      list.push_back(variable(name, tfjob_tf_config(job, environment.tf_config, address).dump()));
    }
  }
  list.push_back(variable("MUSTER_NAMESPACE", job.name_space));
  list.push_back(variable("MUSTER_STORAGE", storage_of(job)));
  list.push_back(variable("MUSTER_HTTP_ADDRESS", "[::]:" + std::to_string(kHttpPort)));
  list.push_back(
      {{"name", "MUSTER_POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}});
  if (job.training.is_null()) {
    list.push_back(variable("PYTHONUNBUFFERED", "1"));
  } else {
    list.push_back(variable("MUSTER_TRAINING", std::string(kTrainingFolder) + "/" + kTrainingFile));
    list.push_back(variable("MUSTER_RESTARTS_IN_PLACE",
                            std::to_string(plan::restarts_in_place(job, replica.role))));
    list.push_back(variable("MUSTER_PEER_PORTS",
                            std::to_string(kPeerPort + 1) + "-" + std::to_string(kLastPeerPort)));
    if (!job.status.keys().empty()) list.push_back(variable("MUSTER_TLS", kKeysFolder));
    if (takes_requests(job, replica.role, replica.index))
      list.push_back(
          variable("MUSTER_CHECKPOINT_REQUEST", std::string(kTrainingFolder) + "/" + kRequestFile));
  }
  return list;
}

// Adds the job's volume. If the job has none and training needs a place to write to, adds a volume
// that belongs to the pod.
void add_storage(const api::TrainingJob& job, Json& spec, Json& container) {
  Json volume = {{"name", kStorageVolume}};
  if (job.storage_volume.is_object()) {
    volume.update(job.storage_volume);
  } else if (job.training.is_null()) {
    return;
  } else {
    volume["emptyDir"] = Json::object();
  }
  spec["volumes"].push_back(std::move(volume));
  container["volumeMounts"].push_back(
      {{"name", kStorageVolume}, {"mountPath", job.storage_mount_path}});
}

// Returns an entry of a downward API volume: the annotation as a file.
Json annotation_file(const char* annotation, const char* file) {
  const std::string field = std::string("metadata.annotations['") + annotation + "']";
  return {{"path", file}, {"fieldRef", {{"fieldPath", field}}}};
}

// All replicas have the file of requests, so that their templates are the same; only the leader's
// file has content.
void add_training_files(const api::TrainingJob& job, Json& spec, Json& container) {
  Json items = Json::array({annotation_file(kTrainingAnnotation, kTrainingFile)});
  if (api::keeps_checkpoints(job))
    items.push_back(annotation_file(api::kCheckpointAnnotation, kRequestFile));
  spec["volumes"].push_back(
      {{"name", kTrainingVolume}, {"downwardAPI", {{"items", std::move(items)}}}});
  container["volumeMounts"].push_back(
      {{"name", kTrainingVolume}, {"mountPath", kTrainingFolder}, {"readOnly", true}});
}

// Returns the entry of this name in a list of named objects; null if there is none.
Json* named(Json& list, const std::string& name) {
  const auto found = std::ranges::find_if(
      list, [&](const Json& entry) { return string_or(entry, "name", "") == name; });
  return found == list.end() ? nullptr : &*found;
}

// Adds a volume that only the pod's containers can read.
void add_keys(const api::TrainingJob& job, Json& spec, Json& container) {
  spec["volumes"].push_back(
      {{"name", kKeysVolume},
       {"secret", {{"secretName", job.status.keys()}, {"defaultMode", kReadable}}}});
  container["volumeMounts"].push_back(
      {{"name", kKeysVolume}, {"mountPath", kKeysFolder}, {"readOnly", true}});
}

void add_scratch(Json& spec, Json& container) {
  spec["volumes"].push_back({{"name", kScratchVolume}, {"emptyDir", Json::object()}});
  container["volumeMounts"].push_back({{"name", kScratchVolume}, {"mountPath", "/tmp"}});
}

void restrict(Json& spec, Json& container) {
  spec["securityContext"] = {{"runAsNonRoot", true},
                             {"runAsUser", kUser},
                             {"runAsGroup", kUser},
                             {"fsGroup", kUser},
                             {"fsGroupChangePolicy", "OnRootMismatch"},
                             {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  container["securityContext"] = {{"allowPrivilegeEscalation", false},
                                  {"readOnlyRootFilesystem", true},
                                  {"capabilities", {{"drop", Json::array({"ALL"})}}}};
  spec["automountServiceAccountToken"] = false;
  spec["enableServiceLinks"] = false;
}

// A user's own program answers no probes.
bool runs_trainer(const api::TrainingJob& job, api::Role role) {
  const Json& container = api::counting_container(job, role);
  const Json& command = member(container, "command");
  return command.is_null() || command.empty();
}

// Returns how many GPUs a replica needs.
int needed_gpus(const api::TrainingJob& job, api::Role role) {
  if (role == api::Role::ps) return string_or(job.training, "psDevice", "") == "cuda" ? 1 : 0;
  if (string_or(job.training, "device", "") != "cuda") return 0;
  if (role == api::Role::evaluator) return 1;
  return static_cast<int>(integer_or(job.training, "devices", 1));
}

// GPU libraries exchange data through shared memory; by default a container has only 64 MiB of it.
void add_gpus(const api::TrainingJob& job, api::Role role, Json& spec, Json& container) {
  if (!api::asks_for_nvidia(api::counting_container(job, role)))
    container["resources"]["limits"][api::kGpus] = needed_gpus(job, role);
  spec["tolerations"].push_back(
      {{"key", api::kGpus}, {"operator", "Exists"}, {"effect", "NoSchedule"}});
  spec["volumes"].push_back({{"name", kSharedMemoryVolume}, {"emptyDir", {{"medium", "Memory"}}}});
  container["volumeMounts"].push_back({{"name", kSharedMemoryVolume}, {"mountPath", "/dev/shm"}});
}

// Whether resources of a container or of a pod say how much CPU or memory it needs.
bool are_sized(const Json& resources) {
  const auto names_one = [](const Json& amounts) {
    return !member(amounts, "cpu").is_null() || !member(amounts, "memory").is_null();
  };
  return names_one(member(resources, "requests")) || names_one(member(resources, "limits"));
}

// A node that runs out of memory first evicts the pods that request nothing.
void add_requests(const api::TrainingJob& job, api::Role role, Json& container) {
  const Json& of_template = job.replicas.at(role).pod_template;
  const bool sized = are_sized(member(api::counting_container(job, role), "resources")) ||
                     are_sized(member(member(of_template, "spec"), "resources"));
  if (!sized)
    container["resources"]["requests"] = {{"cpu", kRequestedCpu}, {"memory", kRequestedMemory}};
}

// Adds the parts that only a replica of muster-trainer has.
void add_trainer(const api::TrainingJob& job, const PodSettings& settings, bool runs_trainer,
                 bool with_gpus, Json& spec, Json& container) {
  container["image"] = with_gpus ? settings.trainer_cuda_image : settings.trainer_image;
  if (!settings.image_pull_policy.empty()) {
    container["imagePullPolicy"] = settings.image_pull_policy;
  }
  container["ports"] = Json::array({{{"name", "peers"}, {"containerPort", kPeerPort}},
                                    {{"name", "metrics"}, {"containerPort", kHttpPort}}});
  if (runs_trainer) {
    container["readinessProbe"] = {{"httpGet", {{"path", "/healthz"}, {"port", kHttpPort}}},
                                   {"periodSeconds", 2},
                                   {"timeoutSeconds", 2}};
  }
  spec["terminationGracePeriodSeconds"] = api::kGraceSeconds;
  add_training_files(job, spec, container);
  add_scratch(spec, container);
  restrict(spec, container);
}

}  // namespace

Json default_pod_spec(const api::TrainingJob& job, const plan::CreateReplica& replica,
                      const std::string& container_name, const PodSettings& settings) {
  Json container = {{"name", container_name},
                    {"env", environment_of(job, replica, settings)},
                    {"volumeMounts", Json::array()},
                    {"terminationMessagePolicy", "FallbackToLogsOnError"}};
  Json spec = {{"volumes", Json::array()},
               {"tolerations", Json::array({toleration("node.kubernetes.io/not-ready"),
                                            toleration("node.kubernetes.io/unreachable")})}};
  if (!job.training.is_null()) {
    const bool gpus = needed_gpus(job, replica.role) > 0;
    add_trainer(job, settings, runs_trainer(job, replica.role), gpus, spec, container);
    if (!job.status.keys().empty()) add_keys(job, spec, container);
    if (gpus) add_gpus(job, replica.role, spec, container);
  }
  if (!is_tfjob(job)) add_requests(job, replica.role, container);
  add_storage(job, spec, container);
  spec["containers"] = Json::array({std::move(container)});
  spec.update(gang_pod_spec(job));
  return spec;
}

bool takes_requests(const api::TrainingJob& job, api::Role role, int index) {
  return api::keeps_checkpoints(job) && plan::leads(job, role, index);
}

size_t size_of_variable(const Json& variable) {
  return string_or(variable, "name", "").size() + 1 + string_or(variable, "value", "").size();
}

void move_long_tf_config(Json& pod, const std::string& container_name) {
  Json* container = named(pod["spec"]["containers"], container_name);
  Json* variable = container == nullptr ? nullptr : named((*container)["env"], "TF_CONFIG");
  Json* volume = named(pod["spec"]["volumes"], kTrainingVolume);
  if (variable == nullptr || size_of_variable(*variable) <= kLongestVariable) return;
  if (volume == nullptr || !member(member(*volume, "downwardAPI"), "items").is_array())
    return;  // the template has replaced it
  pod["metadata"]["annotations"][kTfConfigAnnotation] = (*variable)["value"];
  *variable = {{"name", "MUSTER_TF_CONFIG"},
               {"value", std::string(kTrainingFolder) + "/" + kTfConfigFile}};
  (*volume)["downwardAPI"]["items"].push_back(annotation_file(kTfConfigAnnotation, kTfConfigFile));
}

std::string restart_policy_of(const api::TrainingJob& job, api::Role role, const Json& users_spec) {
  const std::string asked = string_or(users_spec, "restartPolicy", "Never");
  const bool never = job.replicas.at(role).restart_policy == api::RestartPolicy::never;
  return never || asked == "Never" ? "Never" : "OnFailure";
}

}  // namespace muster::kube
