#include "operator/kube/pods/pods.h"

#include <algorithm>

#include "common/digest.h"
#include "common/json.h"
#include "operator/api/templates.h"
#include "operator/kube/api/resource.h"
#include "operator/kube/pods/gang.h"
#include "operator/kube/pods/merge.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pod_template.h"

namespace muster::kube {

namespace {

// Reserved names in a template are refused by validation; here they lose, in any container.
void drop_reserved_variables(Json& containers) {
  if (!containers.is_array()) return;
  for (Json& container : containers) {
    if (!member(container, "env").is_array()) continue;
    Json kept = Json::array();
    for (const Json& variable : container["env"]) {
      if (!api::is_reserved(string_or(variable, "name", ""))) kept.push_back(variable);
    }
    container["env"] = std::move(kept);
  }
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
  annotations.update(gang_annotations(job));
  if (!job.training.is_null()) annotations[kTrainingAnnotation] = job.training.dump();
  return {{"name", pod_name(job, replica.role, replica.index, replica.attempt)},
          {"namespace", job.name_space},
          {"labels", labels},
          {"annotations", annotations},
          {"ownerReferences", Json::array({owner_reference(job)})},
          {"finalizers", Json::array({kTrackingFinalizer})}};
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

Json pod_of(const api::TrainingJob& job, const plan::CreateReplica& replica,
            const PodSettings& settings) {
  const Json& of_user = job.replicas.at(replica.role).pod_template;
  const std::string container =
      string_or(api::counting_container(of_user), "name", kDefaultContainer);
  Json users_spec = member(of_user, "spec").is_object() ? member(of_user, "spec") : Json::object();
  if (users_spec.contains("containers")) drop_reserved_variables(users_spec["containers"]);
  Json spec = merge_template(default_pod_spec(job, replica, container, settings), users_spec);
  spec["restartPolicy"] = restart_policy_of(job, replica.role, users_spec);
  spec["hostname"] = host_name(job, replica.role, replica.index);
  spec["subdomain"] = job.name;
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", metadata_of(job, replica, container, member(of_user, "metadata"))},
          {"spec", std::move(spec)}};
}

std::string template_key(const Json& pod) {
  Json rest = pod;
  Json& metadata = rest["metadata"];
  metadata.erase("name");
  metadata.erase("ownerReferences");
  metadata["annotations"].erase(kTrainingAnnotation);
  for (const char* label :
       {kJobLabel, kJobUidLabel, kRoleLabel, kIndexLabel, kAttemptLabel, kRunLabel, kGroupLabel}) {
    metadata["labels"].erase(label);
  }
  metadata["annotations"].erase(kGroupAnnotation);
  rest["spec"].erase("hostname");
  rest["spec"].erase("subdomain");
  drop_reserved_variables(rest["spec"]["containers"]);
  for (Json& volume : rest["spec"]["volumes"])
    if (volume["name"] == kKeysVolume) volume.erase("secret");
  return sha256(rest.dump());
}

Json service_of(const api::TrainingJob& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", job.name},
            {"namespace", job.name_space},
            {"labels", {{kJobLabel, job.name}}},
            {"ownerReferences", Json::array({owner_reference(job)})}}},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{kJobLabel, job.name}, {kJobUidLabel, job.uid}, {kCurrentLabel, "true"}}},
            {"ports", Json::array({{{"name", "peers"}, {"port", kPeerPort}},
                                   {{"name", "metrics"}, {"port", kHttpPort}}})}}}};
}

Json secret_of(const api::TrainingJob& job, const KeyPair& pair) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"type", "kubernetes.io/tls"},
          {"immutable", true},
          {"metadata",
           {{"name", job.status.keys()},
            {"namespace", job.name_space},
            {"labels", {{kJobLabel, job.name}}},
            {"ownerReferences", Json::array({owner_reference(job)})}}},
          {"stringData",
           {{KeyPair::kKeyFile, pair.key}, {KeyPair::kCertificateFile, pair.certificate}}}};
}

}  // namespace muster::kube
