#include "operator/plan/environment.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "common/documents/json.h"
#include "common/net/host_port.h"
#include "operator/api/templates.h"

namespace muster::plan {
namespace {

// Returns the addresses of each role, without the evaluator: it does not train, and no replica
// connects to it.
Json cluster_of(const api::TrainingJob& job, const std::function<std::string(Role, int)>& address) {
  Json cluster = Json::object();
  for (Role peers : api::kRoles) {
    auto spec = job.replicas.find(peers);
    if (peers == Role::evaluator || spec == job.replicas.end() || spec->second.replicas < 1)
      continue;
    Json& addresses = cluster[api::role_name(job, peers)] = Json::array();
    for (int peer = 0; peer < spec->second.replicas; ++peer) {
      addresses.push_back(address(peers, peer));
    }
  }
  return cluster;
}

// https://www.tensorflow.org/guide/distributed_training#TF_CONFIG: `task` says who this replica is.
// A single replica has no TF_CONFIG.
Json tf_config(const api::TrainingJob& job, Role role, int index, const Json& cluster) {
  if (api::replicas_of(job) <= 1 && !api::workers_may_change(job)) return nullptr;
  return {{"cluster", cluster}, {"task", {{"type", api::role_name(job, role)}, {"index", index}}}};
}

Json replicas_by_role(const api::TrainingJob& job) {
  Json replicas = Json::object();
  for (const auto& [role, spec] : job.replicas) {
    replicas[api::role_name(job, role)] = spec.replicas;
  }
  return replicas;
}

int count(const api::TrainingJob& job, Role role) {
  const auto spec = job.replicas.find(role);
  return spec == job.replicas.end() ? 0 : spec->second.replicas;
}

// Adds the variables for scripts that do not read TF_CONFIG. Scripts with options like --ps_hosts
// and --worker_hosts get the addresses of each role in variables like MUSTER_PS_HOSTS, which are
// empty for a role that the job does not have.
void add_hosts(const api::TrainingJob& job, const Json& cluster, ReplicaEnvironment& result) {
  for (const Role role : {Role::ps, Role::chief, Role::worker}) {
    std::string joined;
    for (const Json& address : member(cluster, api::role_name(job, role)))
      joined += (joined.empty() ? "" : ",") + address.get<std::string>();
    std::string name = api::name_of(role);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
    result.variables.emplace_back("MUSTER_" + name + "_HOSTS", joined);
  }
}

constexpr std::array<const char*, 8> kForPytorch = {
    "MASTER_ADDR",     "MASTER_PORT",     "RANK",          "WORLD_SIZE",
    "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK", "PET_NNODES"};

// Adds the variables that PyTorch's init_process_group and torchrun read. Rank 0 is the chief;
// without a chief, worker 0.
// https://pytorch.org/docs/stable/distributed.html#environment-variable-initialization
void add_ranks(const api::TrainingJob& job, Role role, int index,
               const std::function<std::string(Role, int)>& address, ReplicaEnvironment& result) {
  const int chiefs = count(job, Role::chief);
  const int members = chiefs + count(job, Role::worker);
  if ((role != Role::chief && role != Role::worker) || members < 2) return;
  const std::string master = address(chiefs > 0 ? Role::chief : Role::worker, 0);
  const std::string host = host_of(master), port = port_of(master);
  const std::string rank = std::to_string(role == Role::chief ? 0 : chiefs + index);
  const std::string size = std::to_string(members);
  const std::array<std::string, kForPytorch.size()> values = {host, port, rank, size,
                                                              host, port, rank, size};
  for (size_t i = 0; i < values.size(); ++i)
    result.variables.emplace_back(kForPytorch[i], values[i]);
}

// Returns the bounds of a group that may change, as its manifest has them.
Json elastic_group(const api::Elastic& elastic) {
  const bool global = elastic.batch == api::ElasticBatch::global;
  return {{"minReplicas", elastic.min_replicas},
          {"maxReplicas", elastic.max_replicas},
          {"batch", global ? "global" : "perReplica"}};
}

}  // namespace

bool is_for_pytorch(std::string_view variable) {
  return std::ranges::find(kForPytorch, variable) != kForPytorch.end();
}

ReplicaEnvironment environment(const api::TrainingJob& job, Role role, int index, int attempt,
                               const std::function<std::string(Role, int)>& address) {
  ReplicaEnvironment result;
  const Json cluster = cluster_of(job, address);
  result.tf_config = tf_config(job, role, index, cluster);
  if (!result.tf_config.is_null()) {
    result.variables.emplace_back("TF_CONFIG", result.tf_config.dump());
  }
  result.variables.emplace_back("MUSTER_JOB", job.name);
  result.variables.emplace_back("MUSTER_JOB_UID", job.uid);
  result.variables.emplace_back("MUSTER_ROLE", api::role_name(job, role));
  result.variables.emplace_back("MUSTER_INDEX", std::to_string(index));
  result.variables.emplace_back("MUSTER_ATTEMPT", std::to_string(attempt));
  result.variables.emplace_back("MUSTER_REPLICAS", replicas_by_role(job).dump());
  if (job.elastic) {
    result.variables.emplace_back("MUSTER_ELASTIC", elastic_group(*job.elastic).dump());
  }
  if (!job.storage_adopt.empty()) result.variables.emplace_back("MUSTER_ADOPT", job.storage_adopt);
  const auto ps = job.replicas.find(Role::ps);
  if (ps != job.replicas.end() && ps->second.replication > 1)
    result.variables.emplace_back("MUSTER_REPLICATION", std::to_string(ps->second.replication));
  if (!job.training.is_null()) {
    const auto grace = api::grace_of(job.replicas.at(role).pod_template);
    result.variables.emplace_back("MUSTER_GRACE_SECONDS", std::to_string(grace.count()));
    if (job.status.is_true("SuccessCriteriaMet"))
      result.variables.emplace_back("MUSTER_TRAINED", "1");
  }
  if (job.training.is_null()) {
    add_hosts(job, cluster, result);
    add_ranks(job, role, index, address, result);
  }
  return result;
}

}  // namespace muster::plan
