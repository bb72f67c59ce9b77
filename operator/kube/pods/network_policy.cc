#include "operator/kube/pods/network_policy.h"

#include <algorithm>

#include "common/documents/json.h"
#include "common/error.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

namespace {

Json selector(const Json& labels) {
  return {{"matchLabels", labels}};
}

Json tcp(int first, int last) {
  Json port = {{"protocol", "TCP"}, {"port", first}};
  if (last != first) port["endPort"] = last;
  return Json::array({port});
}

// Whether the replicas' GPUs may exchange gradients between pods by NCCL, which chooses its own
// ports.
bool may_use_nccl(const api::TrainingJob& job) {
  if (job.strategy != "collective" || string_or(job.training, "device", "auto") == "cpu")
    return false;
  const std::string nccl = string_or(member(job.training, "synchronization"), "nccl", "auto");
  return nccl == "always" || (nccl == "auto" && job.transport == api::Transport::none);
}

}  // namespace

Json network_policy_of(const api::TrainingJob& job, const Json& http_peers) {
  if (job.training.is_null() || http_peers.is_null()) return nullptr;
  const Json of_job = {{kJobLabel, job.name}, {kJobUidLabel, job.uid}};
  Json is_protected = of_job;
  is_protected[kPortsLabel] = kFixedPorts;
  Json of_peers = {{"from", Json::array({{{"podSelector", selector(of_job)}}})}};
  if (!may_use_nccl(job)) of_peers["ports"] = tcp(kPeerPort, kLastPeerPort);
  return {
      {"apiVersion", "networking.k8s.io/v1"},
      {"kind", "NetworkPolicy"},
      {"metadata", belonging_metadata(job, job.name + "-replicas")},
      {"spec",
       {{"podSelector", selector(is_protected)},
        {"policyTypes", Json::array({"Ingress"})},
        {"ingress",
         Json::array({of_peers, {{"from", http_peers}, {"ports", tcp(kHttpPort, kHttpPort)}}})}}}};
}

Json to_http_peers(const std::string& text) {
  Json peers = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto is_peer = [](const Json& peer) { return peer.is_object() && !peer.empty(); };
  if (!peers.is_array() || peers.empty() || !std::ranges::all_of(peers, is_peer)) {
    throw Invalid(
        "the peers of the replicas' HTTP port: expected a list of NetworkPolicyPeers as "
        "JSON, with at least one, found " +
        text);
  }
  return peers;
}

}  // namespace muster::kube
