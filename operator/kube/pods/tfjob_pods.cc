#include "operator/kube/pods/tfjob_pods.h"

#include <algorithm>
#include <set>

#include "common/documents/json.h"
#include "operator/api/templates.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"
#include "operator/plan/values.h"

namespace muster::kube {

namespace {

constexpr size_t kLongestBase = 47;  // plus "-evaluator-" and five digits: 63 characters
constexpr const char* kPortName = "tfjob-port";
constexpr const char* kJobRoleLabel = "training.kubeflow.org/job-role";

const Json& ports_of(const api::TrainingJob& job, api::Role role) {
  return member(api::counting_container(job, role), "ports");
}

// Returns the named ports of the role's container as a Service has them, and the port in TF_CONFIG.
Json service_ports(const api::TrainingJob& job, api::Role role) {
  Json ports = Json::array();
  bool has_port = false;
  for (const Json& port : ports_of(job, role)) {
    const std::string name = string_or(port, "name", "");
    if (name.empty() || !member(port, "containerPort").is_number_integer()) continue;
    ports.push_back({{"name", name},
                     {"port", port["containerPort"]},
                     {"protocol", string_or(port, "protocol", "TCP")}});
    has_port = has_port || name == kPortName;
  }
  if (!has_port) ports.push_back({{"name", kPortName}, {"port", kPeerPort}, {"protocol", "TCP"}});
  return ports;
}

Json service_of_replica(const api::TrainingJob& job, api::Role role, int index) {
  Json selector = tfjob_labels(job, role, index);
  selector.erase(kJobRoleLabel);
  Json metadata = belonging_metadata(job, host_name(job, role, index));
  metadata["labels"].update(selector);
  // Pods of a deleted job with this name may still exist, and a replaced pod on a lost node.
  selector.update({{kJobUidLabel, job.uid}, {kCurrentLabel, "true"}});
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", std::move(selector)},
            {"ports", service_ports(job, role)}}}};
}

// https://www.tensorflow.org/api_docs/python/tf/train/ClusterSpec calls such a cluster sparse.
// TensorFlow expects the task to be in the cluster.
Json sparse_cluster(const Json& cluster, const Json& task, const Address& address) {
  const std::string type = task["type"];
  const int index = task["index"];
  Json sparse = {{"worker", Json::object()}, {"ps", Json::array()}};
  if (type == "ps") sparse["ps"].push_back(address(api::Role::ps, index));
  const bool is_chief = type == "chief" || type == "master";
  if (type != "worker" && !is_chief) return sparse;
  if (cluster.contains("ps")) sparse["ps"] = cluster["ps"];
  if (is_chief)
    sparse[type] = cluster[type];
  else
    sparse["worker"][std::to_string(index)] = address(api::Role::worker, index);
  return sparse;
}

}  // namespace

bool is_tfjob(const api::TrainingJob& job) {
  return !job.tfjob.name.empty();
}

bool is_told_by_tfjob(const std::string& reason) {
  static const std::set<std::string> told = {"Started", "Running",   "Restarting", "Suspended",
                                             "Resumed", "Succeeded", "Failed"};
  return told.contains(reason);
}

std::string tfjob_base_name(const api::TrainingJob& job) {
  return job.tfjob.name.size() <= kLongestBase ? job.tfjob.name : job.name;
}

int tfjob_port(const api::TrainingJob& job, api::Role role) {
  for (const Json& port : ports_of(job, role))
    if (string_or(port, "name", "") == kPortName)
      return static_cast<int>(integer_or(port, "containerPort", kPeerPort));
  return kPeerPort;
}

void add_tfjob_port(Json& containers, const std::string& container_name) {
  if (!containers.is_array()) return;  // the API server refuses it
  for (Json& container : containers) {
    if (string_or(container, "name", "") != container_name) continue;
    Json& ports = container["ports"];
    const bool declared = std::ranges::any_of(
        ports, [](const Json& port) { return string_or(port, "name", "") == kPortName; });
    const bool is_list = ports.is_null() || ports.is_array();
    if (is_list && !declared) ports.push_back({{"name", kPortName}, {"containerPort", kPeerPort}});
  }
}

Json tfjob_labels(const api::TrainingJob& job, api::Role role, int index) {
  Json labels = {{"training.kubeflow.org/operator-name", "tfjob-controller"},
                 {"training.kubeflow.org/job-name", job.tfjob.name},
                 {"training.kubeflow.org/replica-type", api::role_name(job, role)},
                 {"training.kubeflow.org/replica-index", std::to_string(index)}};
  if (plan::leads(job, role, index)) labels[kJobRoleLabel] = "master";
  return labels;
}

std::vector<Json> tfjob_services(const api::TrainingJob& job) {
  std::vector<Json> services;
  for (const auto& [role, spec] : job.replicas)
    for (int index = 0; index < spec.replicas; ++index)
      services.push_back(service_of_replica(job, role, index));
  return services;
}

Json tfjob_tf_config(const api::TrainingJob& job, Json tf_config, const Address& address) {
  if (job.enable_dynamic_worker) {
    tf_config["cluster"] = sparse_cluster(tf_config["cluster"], tf_config["task"], address);
    return tf_config;
  }
  for (const auto& [role, spec] : job.replicas) {
    Json& addresses = tf_config["cluster"][api::role_name(job, role)];
    if (addresses.is_null()) addresses = Json::array();
    for (int index = static_cast<int>(addresses.size()); index < spec.replicas; ++index)
      addresses.push_back(address(role, index));
  }
  tf_config["environment"] = "cloud";
  return tf_config;
}

}  // namespace muster::kube
