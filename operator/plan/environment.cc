#include "operator/plan/environment.h"

namespace muster::plan {
namespace {

// https://www.tensorflow.org/guide/distributed_training#TF_CONFIG: `cluster` without the evaluator,
// which trains nothing and is known to nobody; `task` says who this replica is.
Json tf_config(const api::TrainingJob& job, Role role, int index,
               const std::function<std::string(Role, int)>& address) {
  if (api::replicas_of(job) <= 1 && !api::workers_may_change(job)) return nullptr;
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
  return {{"cluster", cluster}, {"task", {{"type", api::role_name(job, role)}, {"index", index}}}};
}

Json replicas_by_role(const api::TrainingJob& job) {
  Json replicas = Json::object();
  for (const auto& [role, spec] : job.replicas) {
    replicas[api::role_name(job, role)] = spec.replicas;
  }
  return replicas;
}

// Returns the bounds of a group that may change, as its manifest has them.
Json elastic_group(const api::Elastic& elastic) {
  const bool global = elastic.batch == api::ElasticBatch::global;
  return {{"minReplicas", elastic.min_replicas},
          {"maxReplicas", elastic.max_replicas},
          {"batch", global ? "global" : "perReplica"}};
}

}  // namespace

ReplicaEnvironment environment(const api::TrainingJob& job, Role role, int index, int attempt,
                               const std::function<std::string(Role, int)>& address) {
  ReplicaEnvironment result;
  result.tf_config = tf_config(job, role, index, address);
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
  return result;
}

}  // namespace muster::plan
