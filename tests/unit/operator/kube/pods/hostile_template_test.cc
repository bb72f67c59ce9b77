#include <gtest/gtest.h>

#include <algorithm>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {
namespace {

// A template with every field that pods.h looks at, of the types that Kubernetes knows.
constexpr char kTemplate[] = R"({
  "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
  "spec": {
    "restartPolicy": "OnFailure", "serviceAccountName": "e", "hostname": "f", "subdomain": "g",
    "nodeSelector": {"h": "i"}, "securityContext": {"runAsUser": 7},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
      {"weight": 1, "preference": {}}]}},
    "volumes": [{"name": "muster-training", "downwardAPI": {"items": [{"path": "j"}]}},
                {"name": "muster-tls", "secret": {"secretName": "k"}}],
    "initContainers": [{"name": "l", "image": "m", "env": [{"name": "n", "value": "o"}]}],
    "containers": [{
      "name": "trainer", "image": "p", "command": ["muster-trainer"], "args": ["q"],
      "env": [{"name": "A", "value": "1"}, {"name": "TF_CONFIG", "value": "2"}],
      "ports": [{"name": "tfjob-port", "containerPort": 2222}],
      "resources": {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": 1}},
      "volumeMounts": [{"name": "r", "mountPath": "/s"}],
      "securityContext": {"privileged": true}, "readinessProbe": {"httpGet": {"port": 1}}}]}})";

std::vector<Json::json_pointer> places_of(const Json& value) {
  std::vector<Json::json_pointer> places;
  const Json flat = value.flatten();
  for (const auto& [path, leaf] : flat.items())
    for (Json::json_pointer place(path);; place.pop_back()) {
      if (std::ranges::find(places, place) == places.end()) places.push_back(place);
      if (place.empty()) break;
    }
  return places;
}

api::TrainingJob job_of(const Json& pod_template, bool trains, bool of_tfjob) {
  api::TrainingJob job;
  job.name = "mnist";
  job.name_space = "lab";
  job.uid = "uid";
  // So long that TF_CONFIG does not fit into a variable.
  job.replicas[api::Role::worker].replicas = 2500;
  job.replicas[api::Role::worker].pod_template = pod_template;
  if (trains) job.training = {{"epochs", 1}, {"device", "cuda"}};
  if (of_tfjob) job.tfjob.name = "mnist";
  job.status.security = api::Security{};
  job.status.security->keys = "mnist-tls-1";
  api::ReplicaRecord& record = job.status.records.emplace_back();
  record.role = api::Role::worker;
  record.avoided_nodes = {"node-1"};
  return job;
}

// A wrong pod must reach the API server, which says what is wrong. An exception of another kind
// than Invalid would be a bug.
TEST(HostileTemplate, OfAnyTypesAnywhereGivesAPodOrIsInvalid) {
  const Json whole = Json::parse(kTemplate);
  const Json wrong[] = {nullptr,
                        7,
                        "x",
                        true,
                        Json::object(),
                        Json::array(),
                        {"x"},
                        Json::array({Json::array({"x"})}),
                        {{"x", {"y"}}},
                        Json::array({{{"name", 7}}, nullptr, 5})};
  for (const Json::json_pointer& place : places_of(whole))
    for (const Json& value : wrong) {
      Json broken = whole;
      broken[place] = value;
      for (const bool trains : {false, true})
        for (const bool of_tfjob : {false, true}) {
          const api::TrainingJob job = job_of(broken, trains, of_tfjob);
          try {
            const Json pod = pod_of(job, {api::Role::worker, 0, 0, 0}, {});
            refusal_of(elsewhere(job, pod), {});
            template_key(pod);
          } catch (const Invalid&) {
          } catch (const std::exception& error) {
            ADD_FAILURE() << place.to_string() << " = " << value << ": " << error.what();
          }
        }
    }
}

}  // namespace
}  // namespace muster::kube
