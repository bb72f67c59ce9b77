#include "operator/api/rule_checks.h"

#include <re2/re2.h>

#include <algorithm>
#include <map>

#include "common/documents/json.h"
#include "common/documents/problem.h"
#include "operator/api/schema.h"

namespace muster::api {

namespace {

bool has(const Json& value, const char* key) {
  return !member(value, key).is_null();
}

int64_t count(const Json& replica_specs, const char* role) {
  const Json& spec = member(replica_specs, role);
  return spec.is_object() ? std::max<int64_t>(0, integer_or(spec, "replicas", 1)) : 0;
}

// Counts the replicas that compute gradients.
int64_t members(const Json& replica_specs) {
  return count(replica_specs, "chief") + count(replica_specs, "master") +
         count(replica_specs, "worker");
}

const Json& replica_specs(const Json& spec) {
  return member(spec, "replicaSpecs");
}

int64_t all_replicas(const Json& replica_specs) {
  return members(replica_specs) + count(replica_specs, "ps") + count(replica_specs, "evaluator");
}

// Returns how many replicas a gang places together if its manifest does not say.
int64_t placed_together(const Json& self) {
  const Json& roles = replica_specs(self);
  const Json& elastic = member(self, "elastic");
  if (!elastic.is_object()) return all_replicas(roles);
  return count(roles, "chief") + count(roles, "master") + integer_or(elastic, "minReplicas", 1);
}

// A job that has begun is accepted: an older version of Muster has started it with this path.
std::string system_folder(const Json& self) {
  if (member(member(self, "status"), "startTime").is_string()) return "";
  const std::string path = string_or(member(member(self, "spec"), "storage"), "mountPath", "");
  const std::string folders = training_job_schema().at("x-rule-parts").at("systemFolder");
  return RE2::PartialMatch(path, folders) ? describe(Json(path)) : "";
}

std::string chief_and_master(const Json& self) {
  return has(self, "chief") && has(self, "master") ? "both" : "";
}

std::string nobody_computes(const Json& self) {
  return self.is_object() && members(self) == 0 ? "none" : "";
}

std::string fewer_ps_than_copies(const Json& self) {
  const int64_t replicas = count(self, "ps");
  const int64_t replication = integer_or(member(self, "ps"), "replication", 1);
  if (replicas == 0 || replication <= replicas) return "";
  return std::to_string(replication) + " with " + std::to_string(replicas) + " ps";
}

std::string copies_with_backup_workers(const Json& self) {
  const Json& synchronization = member(member(self, "training"), "synchronization");
  const int64_t backup = integer_or(synchronization, "backupWorkers", 0);
  const int64_t copies = integer_or(member(replica_specs(self), "ps"), "replication", 1);
  if (backup == 0 || copies == 1) return "";
  return std::to_string(copies) + " with " + std::to_string(backup) + " backup workers";
}

std::string copies_on_gpus(const Json& self) {
  const std::string device = string_or(member(self, "training"), "psDevice", "cpu");
  const int64_t copies = integer_or(member(replica_specs(self), "ps"), "replication", 1);
  return device == "cpu" || copies == 1 ? "" : std::to_string(copies);
}

std::string no_ps(const Json& self) {
  if (!has(self, "training") ||
      string_or(self, "strategy", "parameterServer") != "parameterServer") {
    return "";
  }
  const int64_t computing = members(replica_specs(self));
  if (computing <= 1 || count(replica_specs(self), "ps") >= 1) return "";
  return "no ps for " + std::to_string(computing) + " members";
}

std::string ps_in_collective(const Json& self) {
  if (!has(self, "training") || string_or(self, "strategy", "parameterServer") != "collective") {
    return "";
  }
  const int64_t ps = count(replica_specs(self), "ps");
  return ps > 0 ? std::to_string(ps) + " ps" : "";
}

std::string evaluation_with_ps(const Json& self) {
  if (!has(member(self, "training"), "evaluation")) return "";
  const int64_t ps = count(replica_specs(self), "ps");
  return ps > 0 ? std::to_string(ps) + " ps" : "";
}

// Returns "" if the job has evaluations, else the text that says what was found instead, for fields
// that need evaluations.
std::string without_evaluation(const Json& self) {
  const bool within = has(member(self, "training"), "evaluation");
  return within || count(replica_specs(self), "evaluator") > 0 ? "" : "neither";
}

std::string stop_without_evaluation(const Json& self) {
  const Json& stop = member(member(self, "training"), "stopWhen");
  if (!stop.is_object() || string_or(stop, "metric", "") == "trainLoss") return "";
  return without_evaluation(self);
}

std::string early_stopping_without_evaluation(const Json& self) {
  return has(member(self, "training"), "earlyStopping") ? without_evaluation(self) : "";
}

std::string best_without_evaluation(const Json& self) {
  const Json& checkpoint = member(member(self, "training"), "checkpoint");
  return has(checkpoint, "bestOnly") ? without_evaluation(self) : "";
}

std::string too_many_backup_workers(const Json& self) {
  const Json& synchronization = member(member(self, "training"), "synchronization");
  const int64_t backup = integer_or(synchronization, "backupWorkers", 0);
  const int64_t computing = members(replica_specs(self));
  if (backup == 0 || backup < computing) return "";
  return std::to_string(backup) + " of " + std::to_string(computing) + " members";
}

std::string nothing_to_evaluate(const Json& self) {
  if (!has(self, "training") || count(replica_specs(self), "evaluator") == 0) return "";
  const Json& data = member(member(self, "training"), "data");
  return has(data, "validation") || has(data, "test") ? "" : "neither";
}

std::string decided_by_nobody(const Json& self) {
  const std::string by = string_or(member(self, "successPolicy"), "decidedBy", "");
  const Json& roles = replica_specs(self);
  if (by == "chief" && !has(roles, "chief") && !has(roles, "master")) return "chief, and no chief";
  if ((by == "allWorkers" || by == "workerZero") && count(roles, "worker") == 0) {
    return by + ", and no workers";
  }
  return "";
}

std::string elastic_backwards(const Json& self) {
  const int64_t low = integer_or(self, "minReplicas", 1);
  const int64_t high = integer_or(self, "maxReplicas", low);
  return low <= high ? "" : std::to_string(low) + " and " + std::to_string(high);
}

std::string elastic_without_workers(const Json& self) {
  const Json& elastic = member(self, "elastic");
  if (!elastic.is_object() || !elastic_backwards(elastic).empty()) return "";
  if (!member(replica_specs(self), "worker").is_object()) return "no workers";
  const int64_t workers = count(replica_specs(self), "worker");
  const bool inside = workers >= integer_or(elastic, "minReplicas", 0) &&
                      workers <= integer_or(elastic, "maxReplicas", workers);
  if (inside) return "";
  return std::to_string(workers) + ", where " +
         std::to_string(integer_or(elastic, "minReplicas", 0)) + " to " +
         std::to_string(integer_or(elastic, "maxReplicas", workers)) + " may be";
}

std::string elastic_without_collectives(const Json& self) {
  if (!member(self, "elastic").is_object()) return "";
  const std::string strategy = string_or(self, "strategy", "parameterServer");
  if (strategy != "collective") return "the strategy " + strategy;
  return has(self, "training") ? "" : "no spec.training";
}

// The files are divided once, among the replicas that are there at the start.
std::string elastic_with_shards_of_files(const Json& self) {
  if (!member(self, "elastic").is_object()) return "";
  const Json& train = member(member(member(self, "training"), "data"), "train");
  return string_or(train, "shard", "record") == "file" ? "file" : "";
}

std::string dynamic_worker_with_training(const Json& self) {
  return bool_or(self, "enableDynamicWorker", false) && has(self, "training") ? "spec.training"
                                                                              : "";
}

std::string synchronization_of_collective(const Json& self) {
  if (string_or(self, "strategy", "parameterServer") != "collective") return "";
  const Json& synchronization = member(member(self, "training"), "synchronization");
  const std::string policy = string_or(synchronization, "policy", "sync");
  if (policy != "sync") return "the policy " + policy;
  return integer_or(synchronization, "backupWorkers", 0) > 0 ? "backup workers" : "";
}

std::string rule_without_match(const Json& self) {
  for (const Json& rule : member(self, "rules")) {
    if (rule.is_object() && !has(rule, "onExitCodes") && !has(rule, "onReason")) return "neither";
  }
  return "";
}

std::string rule_for_missing_role(const Json& self) {
  const Json& roles = replica_specs(self);
  const bool chief = has(roles, "chief") || has(roles, "master");
  for (const Json& rule : member(member(self, "failurePolicy"), "rules")) {
    for (const Json& role : member(rule, "roles")) {
      if (!role.is_string()) continue;
      const std::string name = role.get<std::string>();
      const bool there = name == "chief" || name == "master" ? chief : has(roles, name.c_str());
      if (!there) return name;
    }
  }
  return "";
}

std::string more_than_all(const Json& self) {
  const int64_t minimum = integer_or(member(self, "schedulingPolicy"), "minAvailable", 0);
  const int64_t all = all_replicas(replica_specs(self));
  return minimum <= all ? "" : std::to_string(minimum) + " of " + std::to_string(all) + " replicas";
}

// The scheduler waits for all replicas of a gang, but with InOrder a role is created only after the
// role before it is ready.
std::string gang_in_order(const Json& self) {
  const Json& policy = member(self, "schedulingPolicy");
  if (string_or(member(self, "startupPolicy"), "order", "Any") != "InOrder") return "";
  if (string_or(policy, "gang", "none") == "none") return "";
  const Json& roles = replica_specs(self);
  int64_t first = 0;
  for (const char* role : {"ps", "chief", "master", "worker"}) {
    if (first == 0) first = count(roles, role);
  }
  const int64_t together = integer_or(policy, "minAvailable", placed_together(self));
  if (together <= first) return "";
  return std::to_string(together) + " replicas, of which " + std::to_string(first) + " start first";
}

// check_templates() does the check, because it can name the container.
std::string left_to_templates(const Json& /*self*/) {
  return "";
}

}  // namespace

RuleCheck rule_check(const std::string& name) {
  static const std::map<std::string, RuleCheck> checks = {
      {"system_folder", system_folder},
      {"chief_and_master", chief_and_master},
      {"nobody_computes", nobody_computes},
      {"fewer_ps_than_copies", fewer_ps_than_copies},
      {"copies_with_backup_workers", copies_with_backup_workers},
      {"copies_on_gpus", copies_on_gpus},
      {"no_ps", no_ps},
      {"ps_in_collective", ps_in_collective},
      {"evaluation_with_ps", evaluation_with_ps},
      {"stop_without_evaluation", stop_without_evaluation},
      {"early_stopping_without_evaluation", early_stopping_without_evaluation},
      {"best_without_evaluation", best_without_evaluation},
      {"too_many_backup_workers", too_many_backup_workers},
      {"nothing_to_evaluate", nothing_to_evaluate},
      {"decided_by_nobody", decided_by_nobody},
      {"elastic_backwards", elastic_backwards},
      {"elastic_without_workers", elastic_without_workers},
      {"elastic_without_collectives", elastic_without_collectives},
      {"elastic_with_shards_of_files", elastic_with_shards_of_files},
      {"dynamic_worker_with_training", dynamic_worker_with_training},
      {"synchronization_of_collective", synchronization_of_collective},
      {"rule_without_match", rule_without_match},
      {"rule_for_missing_role", rule_for_missing_role},
      {"more_than_all", more_than_all},
      {"gang_in_order", gang_in_order},
      {"left_to_templates", left_to_templates},
  };
  return checks.at(name);
}

}  // namespace muster::api
