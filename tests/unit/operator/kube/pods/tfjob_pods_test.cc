#include "operator/kube/pods/tfjob_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "common/documents/json.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"
#include "operator/plan/environment.h"

namespace muster::kube {
namespace {

using api::Role;

api::TrainingJob job(const std::string& name = "mnist") {
  api::TrainingJob job;
  job.name = name.substr(0, 40);
  job.name_space = "lab";
  job.uid = "3f6c";
  job.tfjob = {name, "77aa"};
  for (const Role role : {Role::ps, Role::chief, Role::worker, Role::evaluator})
    job.replicas[role].pod_template = Json::parse(R"({"spec": {"containers": [
        {"name": "tensorflow", "image": "tf"}]}})");
  job.replicas[Role::worker].replicas = 2;
  job.says_master = true;
  return job;
}

// The container is called as the one that counts; init containers and sidecars have ports too.
void set_ports(api::TrainingJob& job, Role role, const char* ports) {
  job.replicas[role].pod_template["spec"]["containers"][0]["ports"] = Json::parse(ports);
}

Json tf_config(const api::TrainingJob& job, Role role, int index) {
  const Json pod = pod_of(job, {role, index, 0, 0}, {"", "", "", "cluster.local"});
  for (const Json& variable : pod["spec"]["containers"][0]["env"])
    if (variable["name"] == "TF_CONFIG") return Json::parse(variable["value"].get<std::string>());
  return nullptr;
}

TEST(TfJobPods, AllAttemptsHaveTheNameOfV1) {
  EXPECT_EQ(pod_name(job(), Role::worker, 1, 0), "mnist-worker-1");
  EXPECT_EQ(pod_name(job(), Role::worker, 1, 7), "mnist-worker-1");
  EXPECT_EQ(pod_name(job(), Role::chief, 0, 0), "mnist-master-0");
}

TEST(TfJobPods, NamesFitIntoThe63CharactersOfAService) {
  const std::string longest(47, 'a'), longer(48, 'a');
  EXPECT_EQ(host_name(job(longest), Role::evaluator, 99'999), longest + "-evaluator-99999");
  EXPECT_EQ(host_name(job(longest), Role::evaluator, 99'999).size(), 63u);
  EXPECT_EQ(host_name(job(longer), Role::ps, 0), std::string(40, 'a') + "-ps-0");
}

// The training-operator 1.9 writes this for the same job.
TEST(TfJobPods, TfConfigIsThatOfV1) {
  EXPECT_EQ(tf_config(job(), Role::worker, 1), Json::parse(R"({
    "cluster": {
      "ps": ["mnist-ps-0.lab.svc.cluster.local:2222"],
      "master": ["mnist-master-0.lab.svc.cluster.local:2222"],
      "worker": ["mnist-worker-0.lab.svc.cluster.local:2222",
                 "mnist-worker-1.lab.svc.cluster.local:2222"],
      "evaluator": ["mnist-evaluator-0.lab.svc.cluster.local:2222"]},
    "task": {"type": "worker", "index": 1}, "environment": "cloud"})"));
}

TEST(TfJobPods, ADynamicWorkerKnowsAllPsAndItself) {
  api::TrainingJob dynamic = job();
  dynamic.enable_dynamic_worker = true;
  dynamic.replicas[Role::ps].replicas = 2;
  EXPECT_EQ(tf_config(dynamic, Role::worker, 1), Json::parse(R"({
    "cluster": {"worker": {"1": "mnist-worker-1.lab.svc.cluster.local:2222"},
                "ps": ["mnist-ps-0.lab.svc.cluster.local:2222",
                       "mnist-ps-1.lab.svc.cluster.local:2222"]},
    "task": {"type": "worker", "index": 1}})"));
  EXPECT_EQ(tf_config(dynamic, Role::chief, 0)["cluster"], Json::parse(R"({
    "worker": {}, "ps": ["mnist-ps-0.lab.svc.cluster.local:2222",
                         "mnist-ps-1.lab.svc.cluster.local:2222"],
    "master": ["mnist-master-0.lab.svc.cluster.local:2222"]})"));
  EXPECT_EQ(tf_config(dynamic, Role::ps, 1)["cluster"], Json::parse(R"({
    "worker": {}, "ps": ["mnist-ps-1.lab.svc.cluster.local:2222"]})"));
}

TEST(TfJobPods, TheOnlyReplicaHasNoTfConfig) {
  api::TrainingJob alone = job();
  alone.replicas.erase(Role::ps);
  alone.replicas.erase(Role::chief);
  alone.replicas.erase(Role::evaluator);
  alone.replicas[Role::worker].replicas = 1;
  EXPECT_TRUE(tf_config(alone, Role::worker, 0).is_null());
  alone.enable_dynamic_worker = true;
  EXPECT_TRUE(tf_config(alone, Role::worker, 0).is_null());
}

TEST(TfJobPods, ATypeWithoutReplicasIsAnEmptyList) {
  api::TrainingJob without = job();
  without.replicas[Role::evaluator].replicas = 0;
  EXPECT_EQ(tf_config(without, Role::worker, 0)["cluster"]["evaluator"], Json::array());
}

TEST(TfJobPods, ThePortIsTheOneOfItsName) {
  api::TrainingJob other = job();
  set_ports(other, Role::ps, R"([{"name": "http", "containerPort": 80},
                                 {"name": "tfjob-port", "containerPort": 3333}])");
  set_ports(other, Role::worker, R"([{"containerPort": 4444}])");
  EXPECT_EQ(tfjob_port(other, Role::ps), 3333);
  EXPECT_EQ(tfjob_port(other, Role::worker), 2222);
  EXPECT_EQ(tf_config(other, Role::worker, 0)["cluster"]["ps"][0],
            "mnist-ps-0.lab.svc.cluster.local:3333");
  EXPECT_EQ(tfjob_services(other)[0]["spec"]["ports"], Json::parse(R"([
      {"name": "http", "port": 80, "protocol": "TCP"},
      {"name": "tfjob-port", "port": 3333, "protocol": "TCP"}])"));
}

TEST(TfJobPods, AContainerDeclaresThePortOfTfConfig) {
  const auto ports = [](const char* declared) {
    api::TrainingJob one = job();
    set_ports(one, Role::ps, declared);
    return pod_of(one, {Role::ps, 0, 0, 0}, {"", "", "", ""})["spec"]["containers"][0]["ports"];
  };
  EXPECT_EQ(ports("null"), Json::parse(R"([{"name": "tfjob-port", "containerPort": 2222}])"));
  EXPECT_EQ(ports(R"([{"name": "grpc", "containerPort": 2222}])"), Json::parse(R"([
      {"name": "grpc", "containerPort": 2222}, {"name": "tfjob-port", "containerPort": 2222}])"));
  EXPECT_EQ(ports(R"([{"name": "tfjob-port", "containerPort": 3333}])"),
            Json::parse(R"([{"name": "tfjob-port", "containerPort": 3333}])"));
}

// A pod of kubeflow.org/v1 requests nothing where its namespace has no defaults, and a script that
// takes the variables of PyTorch for a sign of it finds none.
TEST(TfJobPods, HaveNoRequestsAndVariablesOfOurs) {
  const Json pod = pod_of(job(), {Role::worker, 1, 0, 0}, {"", "", "", ""});
  const Json& container = pod["spec"]["containers"][0];
  EXPECT_FALSE(container.contains("resources"));
  for (const Json& variable : container["env"])
    EXPECT_FALSE(plan::is_for_pytorch(variable["name"].get<std::string>())) << variable;
}

TEST(TfJobPods, TheContainerNamedTensorflowCountsBesideATrainer) {
  api::TrainingJob both = job();
  both.replicas[Role::worker].pod_template = Json::parse(R"({"spec": {"containers": [
      {"name": "trainer", "image": "sidecar"}, {"name": "tensorflow", "image": "tf"}]}})");
  const auto counting = [](const api::TrainingJob& job) {
    const Json pod = pod_of(job, {Role::worker, 0, 0, 0}, {"", "", "", ""});
    return pod["metadata"]["labels"][kContainerLabel].get<std::string>();
  };
  EXPECT_EQ(counting(both), "tensorflow");
  both.tfjob = {};
  EXPECT_EQ(counting(both), "trainer") << "of a TrainingJob";
}

TEST(TfJobPods, AServiceHasThePortOfTfConfigBesideOthers) {
  api::TrainingJob other = job();
  set_ports(other, Role::ps, R"([{"name": "dns", "containerPort": 53, "protocol": "UDP"}])");
  EXPECT_EQ(tfjob_services(other)[0]["spec"]["ports"], Json::parse(R"([
      {"name": "dns", "port": 53, "protocol": "UDP"},
      {"name": "tfjob-port", "port": 2222, "protocol": "TCP"}])"));
}

// Or each TFJob would cost dry runs of its own.
TEST(TfJobPods, OneDryRunIsEnoughForTfJobsOfOneTemplate) {
  const PodSettings settings = {"", "", "", ""};
  EXPECT_EQ(template_key(pod_of(job("a"), {Role::chief, 0, 0, 0}, settings)),
            template_key(pod_of(job("b"), {Role::worker, 1, 0, 0}, settings)));
}

// A pod's name is its host name then, which its Service resolves.
TEST(TfJobPods, HaveNoSubdomain) {
  const Json pod = pod_of(job(), {Role::worker, 1, 0, 0}, {"", "", "", ""});
  EXPECT_FALSE(pod["spec"].contains("hostname"));
  EXPECT_FALSE(pod["spec"].contains("subdomain"));
}

TEST(TfJobPods, EachReplicaHasAServiceOfItsNameThatFindsItsPods) {
  std::vector<std::string> names;
  for (const Json& service : services_of(job())) {
    names.push_back(service["metadata"]["name"]);
    EXPECT_EQ(service["metadata"]["labels"][kJobLabel], "mnist") << "else it is not in view";
    EXPECT_EQ(service["spec"]["clusterIP"], "None");
    EXPECT_FALSE(service["spec"]["ports"].empty());
  }
  EXPECT_THAT(names, testing::UnorderedElementsAre("mnist-ps-0", "mnist-master-0", "mnist-worker-0",
                                                   "mnist-worker-1", "mnist-evaluator-0"));
  const auto selects = [](const Json& service, const Json& pod) {
    const auto& selector = service["spec"]["selector"].items();
    return std::ranges::all_of(selector, [&](const auto& label) {
      return pod["metadata"]["labels"][label.key()] == label.value();
    });
  };
  const Json pod = pod_of(job(), {Role::worker, 1, 0, 3}, {"", "", "", ""});
  api::TrainingJob before = job();
  before.uid = "0001";
  const Json old_pod = pod_of(before, {Role::worker, 1, 0, 3}, {"", "", "", ""});
  for (const Json& service : services_of(job())) {
    EXPECT_EQ(selects(service, pod), service["metadata"]["name"] == "mnist-worker-1");
    EXPECT_FALSE(selects(service, old_pod)) << "of a deleted job of this name";
  }
}

}  // namespace
}  // namespace muster::kube
