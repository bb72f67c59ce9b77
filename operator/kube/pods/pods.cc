#include "operator/kube/pods/pods.h"

#include <algorithm>
#include <set>

#include "common/digest.h"
#include "common/documents/json.h"
#include "operator/api/templates.h"
#include "operator/kube/api/resource.h"
#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/merge.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pod_template.h"
#include "operator/kube/pods/tfjob_pods.h"
#include "operator/plan/environment.h"

namespace muster::kube {

namespace {

// Whether replicas with the same template have different values of this variable.
bool is_of_replica(const std::string& variable) {
  return api::is_reserved(variable) || plan::is_for_pytorch(variable);
}

Json labels_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
               const std::string& container) {
  return {{kJobLabel, job.name},
          {kJobUidLabel, job.uid},
          {kRoleLabel, api::role_name(job, replica.role)},
          {kIndexLabel, std::to_string(replica.index)},
          {kAttemptLabel, std::to_string(replica.attempt)},
          {kRunLabel, std::to_string(replica.run)},
          {kCurrentLabel, "true"},
          {kContainerLabel, container}};
}

// Returns a pod's metadata; from the template's metadata it takes only labels and annotations.
Json metadata_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
                 const std::string& container, const Json& of_template) {
  Json labels = member(of_template, "labels");
  Json annotations = {{"kubectl.kubernetes.io/default-container", container}};
  annotations = merge_template(annotations, member(of_template, "annotations").is_object()
                                                ? member(of_template, "annotations")
                                                : Json::object());
  if (!labels.is_object()) labels = Json::object();
  labels.update(labels_of(job, replica, container));
  labels.update(gang_labels(job));
  if (is_tfjob(job)) labels.update(tfjob_labels(job, replica.role, replica.index));
  if (!job.training.is_null()) labels[kPortsLabel] = kFixedPorts;
  annotations.update(gang_annotations(job));
  if (!job.training.is_null()) annotations[kTrainingAnnotation] = job.training.dump();
  if (!job.checkpoint_request.empty() && takes_requests(job, replica.role, replica.index))
    annotations[api::kCheckpointAnnotation] = job.checkpoint_request;
  return {{"name", pod_name(job, replica.role, replica.index, replica.attempt)},
          {"namespace", job.name_space},
          {"labels", labels},
          {"annotations", annotations},
          {"ownerReferences", Json::array({owner_reference(job)})},
          {"finalizers", Json::array({kTrackingFinalizer})}};
}

// The API server reads the older name of the field if the newer one is not given.
std::optional<std::string> forbidden_account(const Json& pod, const PodSettings& settings) {
  const Json& spec = member(pod, "spec");
  std::string account = string_or(spec, "serviceAccountName", "");
  if (account.empty()) account = string_or(spec, "serviceAccount", "");
  const std::set<std::string>& allowed = settings.allowed_accounts;
  if (account.empty() || account == "default" || allowed.empty() || allowed.contains(account))
    return std::nullopt;
  std::string names = "default";
  for (const std::string& name : allowed) names += ", " + name;
  return "spec.serviceAccountName of the template: expected a service account that this operator "
         "allows (" +
         names + "), found \"" + account + "\"";
}

std::optional<std::string> too_long_variable(const Json& container) {
  for (const Json& variable : member(container, "env")) {
    const size_t size = size_of_variable(variable);
    if (size <= kLongestVariable) continue;
    const std::string name = string_or(variable, "name", "");
    std::string text = "the variable " + name + " of container " +
                       string_or(container, "name", "") + ": expected at most " +
                       std::to_string(kLongestVariable) +
                       " bytes with its name, which is what Linux starts a program with, found " +
                       std::to_string(size);
    if (name == "TF_CONFIG") text += "; it names all replicas: use fewer, or shorter names";
    return text;
  }
  return std::nullopt;
}

// Returns the member of a value that a user's template may have given any type: null, which the API
// server takes for absent, becomes `empty`. Returns null for a value of another type.
Json* member_like(Json* parent, const char* name, const Json& empty) {
  if (parent == nullptr) return nullptr;
  Json& value = (*parent)[name];
  if (value.is_null()) value = empty;
  return value.type() == empty.type() ? &value : nullptr;
}

// Makes the status show the end of the log of an init container that fails.
void tell_last_words(Json& spec) {
  if (!member(spec, "initContainers").is_array()) return;
  for (Json& container : spec["initContainers"])
    if (container.is_object() && !container.contains("terminationMessagePolicy"))
      container["terminationMessagePolicy"] = "FallbackToLogsOnError";
}

}  // namespace

Json owner_reference(const api::TrainingJob& job) {
  const Resource owner = training_jobs();
  return {{"apiVersion", owner.api_version()},
          {"kind", owner.kind},
          {"name", job.name},
          {"uid", job.uid},
          {"controller", true},
          {"blockOwnerDeletion", true}};
}

Json belonging_metadata(const api::TrainingJob& job, const std::string& name) {
  return {{"name", name},
          {"namespace", job.name_space},
          {"labels", {{kJobLabel, job.name}}},
          {"ownerReferences", Json::array({owner_reference(job)})}};
}

void drop_variables(Json& containers, bool (*drops)(const std::string&)) {
  if (!containers.is_array()) return;
  for (Json& container : containers) {
    if (!member(container, "env").is_array()) continue;
    Json kept = Json::array();
    for (const Json& variable : container["env"]) {
      if (!drops(string_or(variable, "name", ""))) kept.push_back(variable);
    }
    container["env"] = std::move(kept);
  }
}

Json pod_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
            const PodSettings& settings) {
  const Json& of_user = job.replicas.at(replica.role).pod_template;
  const std::string container =
      string_or(api::counting_container(job, replica.role), "name", kDefaultContainer);
  Json users_spec = member(of_user, "spec").is_object() ? member(of_user, "spec") : Json::object();
  // Validation refuses reserved names in a template; here such variables are removed from any
  // container.
  if (users_spec.contains("containers")) drop_variables(users_spec["containers"], api::is_reserved);
  Json spec = merge_template(default_pod_spec(job, replica, container, settings), users_spec);
  tell_last_words(spec);
  spec["restartPolicy"] = restart_policy_of(job, replica.role, users_spec);
  if (is_tfjob(job)) {  // the pod's name is the host name, and no Service has the job's name
    add_tfjob_port(spec["containers"], container);
  } else {
    spec["hostname"] = host_name(job, replica.role, replica.index);
    spec["subdomain"] = job.name;
  }
  Json pod = {{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", metadata_of(job, replica, container, member(of_user, "metadata"))},
              {"spec", std::move(spec)}};
  if (!job.training.is_null()) move_long_tf_config(pod, container);
  return pod;
}

Json elsewhere(const api::TrainingJob& job, Json pod) {
  std::set<std::string> nodes;
  for (const api::ReplicaRecord& record : job.status.records)
    nodes.insert(record.avoided_nodes.begin(), record.avoided_nodes.end());
  if (nodes.empty()) return pod;
  Json* affinity = member_like(&pod["spec"], "affinity", Json::object());
  affinity = member_like(affinity, "nodeAffinity", Json::object());
  Json* preferred =
      member_like(affinity, "preferredDuringSchedulingIgnoredDuringExecution", Json::array());
  if (preferred == nullptr) return pod;
  Json fields = Json::array();
  for (const std::string& node : nodes)
    fields.push_back(
        {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
  preferred->push_back({{"weight", 100}, {"preference", {{"matchFields", std::move(fields)}}}});
  return pod;
}

std::optional<std::string> refusal_of(const Json& pod, const PodSettings& settings) {
  if (auto why = forbidden_account(pod, settings)) return why;
  for (const char* list : {"containers", "initContainers"})
    for (const Json& container : member(member(pod, "spec"), list))
      if (auto why = too_long_variable(container)) return why;
  return std::nullopt;
}

std::string template_key(const Json& pod) {
  Json rest = pod;
  Json& metadata = rest["metadata"];
  metadata.erase("name");
  metadata.erase("ownerReferences");
  metadata["annotations"].erase(kTrainingAnnotation);
  metadata["annotations"].erase(kTfConfigAnnotation);
  metadata["annotations"].erase(api::kCheckpointAnnotation);
  for (const char* label :
       {kJobLabel, kJobUidLabel, kRoleLabel, kIndexLabel, kAttemptLabel, kRunLabel, kGroupLabel}) {
    metadata["labels"].erase(label);
  }
  const Json of_tfjob = tfjob_labels(api::TrainingJob{}, api::Role::worker, 0);
  for (const auto& [label, value] : of_tfjob.items()) metadata["labels"].erase(label);
  metadata["annotations"].erase(kGroupAnnotation);
  rest["spec"].erase("hostname");
  rest["spec"].erase("subdomain");
  drop_variables(rest["spec"]["containers"], is_of_replica);
  for (Json& volume : rest["spec"]["volumes"])
    if (string_or(volume, "name", "") == kKeysVolume) volume.erase("secret");
  return sha256(rest.dump());
}

std::vector<Json> services_of(const api::TrainingJob& job) {
  if (is_tfjob(job)) return tfjob_services(job);
  std::vector<Json> services;
  services.push_back(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", belonging_metadata(job, job.name)},
       {"spec",
        {{"clusterIP", "None"},
         {"publishNotReadyAddresses", true},
         {"selector", {{kJobLabel, job.name}, {kJobUidLabel, job.uid}, {kCurrentLabel, "true"}}},
         {"ports", Json::array({{{"name", "peers"}, {"port", kPeerPort}},
                                {{"name", "metrics"}, {"port", kHttpPort}}})}}}});
  return services;
}

Json secret_of(const api::TrainingJob& job, const KeyPair& pair) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "kubernetes.io/tls"},
          {"immutable", true},
          {"metadata", belonging_metadata(job, job.status.keys())},
          {"stringData",
           {{KeyPair::kKeyFile, pair.key}, {KeyPair::kCertificateFile, pair.certificate}}}};
}

}  // namespace muster::kube
