#include "operator/kube/pods/network_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {
namespace {

constexpr const char* kPeers = R"([
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "muster-system"}},
     "podSelector": {"matchLabels": {"app.kubernetes.io/component": "operator"}}},
    {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}])";

api::TrainingJob job_of(const std::string& name, const std::string& uid) {
  api::TrainingJob job;
  job.name = name;
  job.name_space = "lab";
  job.uid = uid;
  job.training = Json{{"epochs", 1}};
  job.replicas[api::Role::chief] = {};
  job.replicas[api::Role::worker] = {};
  return job;
}

Json labels_of(const api::TrainingJob& job) {
  const Json pod = pod_of(job, {api::Role::worker, 0, 0, 0}, {});
  return pod["metadata"]["labels"];
}

// A pod, or its peer, as a policy sees it.
struct Someone {
  std::string name_space;
  Json labels;
};

// Whether a selector of labels, as far as our policies use them, takes the labels.
bool takes(const Json& selector, const Json& labels) {
  EXPECT_FALSE(selector.contains("matchExpressions")) << "the test does not know them";
  return std::ranges::all_of(member(selector, "matchLabels").items(), [&](const auto& wanted) {
    return wanted.value() == string_or(labels, wanted.key().c_str(), "");
  });
}

bool takes_peer(const Json& peer, const std::string& own_namespace, const Someone& from) {
  const Json namespace_labels = {{"kubernetes.io/metadata.name", from.name_space}};
  const bool in_namespace = peer.contains("namespaceSelector")
                                ? takes(peer["namespaceSelector"], namespace_labels)
                                : from.name_space == own_namespace;
  return in_namespace && (!peer.contains("podSelector") || takes(peer["podSelector"], from.labels));
}

bool takes_port(const Json& of_rule, int port) {
  EXPECT_EQ(of_rule["protocol"], "TCP");
  const int first = of_rule["port"];
  return port >= first && port <= integer_or(of_rule, "endPort", first);
}

// Decides as a network plugin does by a policy, as Kubernetes defines it.
bool may_reach(const Json& policy, const Someone& from, const Someone& to, int port) {
  const Json& spec = policy["spec"];
  EXPECT_EQ(spec["policyTypes"], Json::array({"Ingress"}));
  const std::string own_namespace = policy["metadata"]["namespace"];
  if (to.name_space != own_namespace || !takes(spec["podSelector"], to.labels)) return true;
  return std::ranges::any_of(spec["ingress"], [&](const Json& rule) {
    const auto is_from = [&](const Json& peer) { return takes_peer(peer, own_namespace, from); };
    const auto is_port = [&](const Json& of_rule) { return takes_port(of_rule, port); };
    return std::ranges::any_of(rule["from"], is_from) &&
           (!rule.contains("ports") || std::ranges::any_of(rule["ports"], is_port));
  });
}

TEST(NetworkPolicy, SaysWhoMayReachWhat) {
  const api::TrainingJob job = job_of("mnist", "3f6c");
  const Json policy = network_policy_of(job, to_http_peers(kPeers));
  const Someone replica{"lab", labels_of(job)};
  const Json of_operator = {{"app.kubernetes.io/component", "operator"}};
  const struct {
    const char* who;
    Someone from;
    bool peers, http;
  } table[] = {
      {"a replica of the job", replica, true, false},
      {"another job", {"lab", labels_of(job_of("other", "77aa"))}, false, false},
      {"a deleted job of the same name", {"lab", labels_of(job_of("mnist", "0000"))}, false, false},
      {"a pod of the namespace", {"lab", {{"app", "notebook"}}}, false, false},
      {"the same job in another namespace", {"other", labels_of(job)}, false, false},
      {"an operator", {"muster-system", of_operator}, false, true},
      {"a pod beside the operator", {"muster-system", {{"app", "shell"}}}, false, false},
      {"a pod that calls itself an operator", {"lab", of_operator}, false, false},
      {"Prometheus", {"monitoring", {{"app", "prometheus"}}}, false, true},
  };
  for (const auto& [who, from, peers, http] : table) {
    for (const int port : {kPeerPort, kPeerPort + 1, kLastPeerPort})
      EXPECT_EQ(may_reach(policy, from, replica, port), peers) << who << " at " << port;
    EXPECT_EQ(may_reach(policy, from, replica, kHttpPort), http) << who;
    for (const int port : {22, kPeerPort - 1, kLastPeerPort + 1, 9090})
      EXPECT_FALSE(may_reach(policy, from, replica, port)) << who << " at " << port;
  }
  const Someone stranger{"lab", {{"app", "notebook"}}};
  EXPECT_TRUE(may_reach(policy, replica, stranger, 80)) << "what replicas send is left alone";
  Json of_older_operator = replica.labels;
  of_older_operator.erase(kPortsLabel);
  EXPECT_TRUE(may_reach(policy, replica, {"lab", of_older_operator}, 40000))
      << "whose collectives listen at any port";
}

TEST(NetworkPolicy, NamesThePortsThatCollectivesAreGiven) {
  const Json pod = pod_of(job_of("mnist", "3f6c"), {api::Role::worker, 0, 0, 0}, {});
  const std::string ports = std::to_string(kPeerPort + 1) + "-" + std::to_string(kLastPeerPort);
  const Json wanted = {{"name", "MUSTER_PEER_PORTS"}, {"value", ports}};
  EXPECT_EQ(std::ranges::count(pod["spec"]["containers"][0]["env"], wanted), 1);
}

// NCCL chooses its own.
TEST(NetworkPolicy, LetsGpusOfTheJobReachEachOtherAtAllPortsWhereTheyMayBeLinked) {
  struct Case {
    std::string strategy, device, nccl;
    api::Transport transport;
    bool all_ports;
  };
  using enum api::Transport;
  for (const Case& one : {Case{"collective", "cuda", "always", tls, true},
                          {"collective", "auto", "always", tls, true},
                          {"collective", "cuda", "auto", none, true},
                          {"collective", "cuda", "auto", tls, false},
                          {"collective", "cuda", "never", none, false},
                          {"collective", "cpu", "always", none, false},
                          {"parameterServer", "cuda", "always", none, false}}) {
    SCOPED_TRACE(one.strategy + one.device + one.nccl);
    api::TrainingJob job = job_of("mnist", "3f6c");
    job.strategy = one.strategy;
    job.transport = one.transport;
    job.training["device"] = one.device;
    job.training["synchronization"] = {{"nccl", one.nccl}};
    const Json policy = network_policy_of(job, to_http_peers(kPeers));
    const Someone replica{"lab", labels_of(job)};
    EXPECT_TRUE(may_reach(policy, replica, replica, kPeerPort));
    EXPECT_EQ(may_reach(policy, replica, replica, 40000), one.all_ports);
    EXPECT_FALSE(may_reach(policy, {"lab", {}}, replica, 40000));
    EXPECT_FALSE(may_reach(policy, {"lab", {}}, replica, kPeerPort));
  }
}

TEST(NetworkPolicy, BelongsToTheJob) {
  const Json policy = network_policy_of(job_of("mnist", "3f6c"), to_http_peers(kPeers));
  EXPECT_EQ(policy["metadata"]["ownerReferences"][0]["uid"], "3f6c");
  EXPECT_EQ(policy["metadata"]["name"], "mnist-replicas");
  EXPECT_EQ(policy["apiVersion"], "networking.k8s.io/v1");
}

TEST(NetworkPolicy, IsNotMadeOfAProgramOfOnesOwnOrWhereItIsTurnedOff) {
  api::TrainingJob job = job_of("mnist", "3f6c");
  EXPECT_TRUE(network_policy_of(job, nullptr).is_null());
  job.training = nullptr;
  EXPECT_TRUE(network_policy_of(job, to_http_peers(kPeers)).is_null());
}

// An empty list would let in everybody.
TEST(NetworkPolicy, NeedsSomebodyWhoMayAskForMetrics) {
  for (const char* text : {"", "[]", "{}", "[{}]", "[1]", "nonsense", "null"})
    EXPECT_THROW(to_http_peers(text), Invalid) << text;
}

}  // namespace
}  // namespace muster::kube
