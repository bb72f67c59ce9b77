#include "operator/api/rules.h"

#include <re2/re2.h>

#include <algorithm>
#include <initializer_list>

#include "common/json.h"
#include "common/schema.h"
#include "operator/api/rule_checks.h"

namespace muster::api {

namespace {

using Paths = std::vector<std::string>;

const std::string kRoles = "spec.replicaSpecs";
const Paths kMembersRead = {kRoles + ".chief", kRoles + ".master", kRoles + ".worker.replicas"};
const Paths kPsRead = {kRoles + ".ps.replicas"};
const Paths kEvaluatorRead = {kRoles + ".evaluator.replicas"};

Paths all(std::initializer_list<Paths> lists) {
  Paths result;
  for (const Paths& list : lists) result.insert(result.end(), list.begin(), list.end());
  return result;
}

bool can_be_read(const Problems& problems, const std::string& path) {
  const bool within = path.ends_with(".*");
  return within ? problems.is_whole(path.substr(0, path.size() - 2)) : problems.is_sound(path);
}

// Evaluating these is most of what a write costs the API server, and nearly all of that is finding
// fields: each step from an object to a field is paid by all the fields that the object may have.
// So a path is walked once (.?), the test that settles most jobs comes first, and a write of status
// alone, which raises status.writes, passes at once what only a change of spec can break.
#define CHIEFS "(has(self.replicaSpecs.chief) || has(self.replicaSpecs.master) ? 1 : 0)"
#define MEMBERS "(" CHIEFS " + self.replicaSpecs.?worker.?replicas.orValue(0))"
#define PS "self.replicaSpecs.?ps.?replicas.orValue(0)"
#define EVALUATORS "self.replicaSpecs.?evaluator.?replicas.orValue(0)"
#define FIRST_TO_START                                                      \
  "(" PS " > 0 ? " PS                                                       \
  " : has(self.replicaSpecs.chief) || has(self.replicaSpecs.master) ? 1 : " \
  "self.replicaSpecs.?worker.?replicas.orValue(0))"
#define PLACED_TOGETHER                                                            \
  "(has(self.elastic) ? " CHIEFS " + self.elastic.minReplicas : " MEMBERS " + " PS \
  " + " EVALUATORS ")"
#define SYNCHRONIZATION "self.?training.?synchronization.?"
#define BACKUP_WORKERS SYNCHRONIZATION "backupWorkers.orValue(0)"
#define EACH_ROLE(OF) \
  OF("ps") " && " OF("chief") " && " OF("master") " && " OF("worker") " && " OF("evaluator")
// Paths in full, for Kubernetes cannot estimate what comparing costs otherwise.
#define SAME(field)                                                                       \
  "has(self." field ") == has(oldSelf." field ") && (!has(self." field ") || self." field \
  " == oldSelf." field ")"
#define SAME_ROLE(role)                                                                 \
  "has(self.spec.replicaSpecs." role ") == has(oldSelf.spec.replicaSpecs." role         \
  ") && (!has(self.spec.replicaSpecs." role ") || !has(oldSelf.spec.replicaSpecs." role \
  ") || " SAME("spec.replicaSpecs." role ".template") ")"
#define SAME_COUNT(role)          \
  "self.spec.replicaSpecs.?" role \
  ".?replicas.orValue(0)"         \
  " == oldSelf.spec.replicaSpecs.?" role ".?replicas.orValue(0)"
// There is one chief or none, and an evaluator is outside of the group that runs. That elastic is
// kept is SPEC_KEPT's.
#define GROUP_KEPT SAME_COUNT("ps") " && (has(self.spec.elastic) || " SAME_COUNT("worker") ")"
#define COPIES(job) job ".spec.replicaSpecs.?ps.?replication.orValue(1)"
#define SPEC_KEPT                                                                         \
  SAME("spec.training")                                                                   \
  " && " SAME("spec.elastic") " && self.spec.storage == oldSelf.spec.storage && " COPIES( \
      "self") " == " COPIES("oldSelf") " && " EACH_ROLE(SAME_ROLE)
#define STATUS_ALONE "self.?status.?writes != oldSelf.?status.?writes"
#define SUSPENDED                                                 \
  "(has(oldSelf.status) && has(oldSelf.status.conditions) && "    \
  "oldSelf.status.conditions.exists(c, c.type == 'Suspended' && " \
  "c.status == 'True'))"
// Which container `c` of its `own` counts is as counting_container() has it.
#define RUNS_SOMETHING(role)                                                                \
  "[roles.?" role ".?template.?spec.?containers.orValue([])].all(own, (!has(roles." role    \
  ") || size(own) > 0) && own.all(c, c.?image.orValue('') != '' || "                        \
  "size(c.?command.orValue([])) > 0 || !(c.name == 'trainer' || (!own.exists(d, d.name == " \
  "'trainer') && (c.name == 'tensorflow' || size(own) == 1)))))"

// Regular expressions of RE2, for CEL and for us, which match where nothing of a job may be
// mounted: over what the image is made of, or by a path that does not show where it leads.
#define SYSTEM_FOLDER                                                                    \
  "^/+(proc|sys|dev|etc|bin|sbin|usr|lib|lib32|lib64|libx32|boot|run|var/run)(/.*)?$|^/" \
  "+(tmp|var)?/*$|(^|/)[.][.]?(/|$)"

// A job that has begun goes on: a version of Muster that did not refuse the path has started it.
std::string system_folder(const Json& self) {
  if (member(member(self, "status"), "startTime").is_string()) return "";
  const std::string path = string_or(member(member(self, "spec"), "storage"), "mountPath", "");
  return RE2::PartialMatch(path, SYSTEM_FOLDER) ? describe(Json(path)) : "";
}

}  // namespace

const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {"",
       "(has(self.status) && has(self.status.startTime)) || !has(self.spec.storage.mountPath) || "
       "!self.spec.storage.mountPath.matches('" SYSTEM_FOLDER "')",
       "spec.storage.mountPath",
       "a folder of its own, without . and .. in its path: not /, /tmp or /var, nor at or below "
       "/proc, /sys, /dev, /etc, /bin, /sbin, /usr, /lib, /boot, /run or /var/run, which the "
       "container itself needs",
       system_folder,
       {"spec.storage.mountPath"}},
      {"spec.replicaSpecs",
       "!(has(self.chief) && has(self.master))",
       "master",
       "chief or master, which are two names of one role",
       chief_and_master,
       {kRoles}},
      {"spec.replicaSpecs",
       "has(self.chief) || has(self.master) || self.?worker.?replicas.orValue(0) > 0", "",
       "at least one replica that trains: a chief or a worker", nobody_computes, kMembersRead},
      {"spec.replicaSpecs",
       "self.?ps.?replication.orValue(1) == 1 || self.ps.replicas == 0 || "
       "self.ps.replication <= self.ps.replicas",
       "ps.replication", "no more copies than there are ps", fewer_ps_than_copies,
       all({kPsRead, {kRoles + ".ps.replication"}})},
      {"spec",
       PS " >= 1 || !has(self.training) || self.strategy != 'parameterServer' || " MEMBERS " <= 1",
       "replicaSpecs", "at least one ps where several members train by parameter servers", no_ps,
       all({kMembersRead, kPsRead, {"spec.training", "spec.strategy"}})},
      {"spec", "self.strategy != 'collective' || !has(self.training) || " PS " == 0",
       "replicaSpecs.ps", "no ps, for the strategy is collective", ps_in_collective,
       all({kPsRead, {"spec.training", "spec.strategy"}})},
      {"spec", "!has(self.training) || !has(self.training.evaluation) || " PS " == 0",
       "training.evaluation",
       "no ps beside evaluation: with parameter servers replicaSpecs.evaluator evaluates every "
       "checkpoint, and earlyStopping and bestOnly need one process or the strategy collective",
       evaluation_with_ps, all({kPsRead, {"spec.training.evaluation"}})},
      {"spec", BACKUP_WORKERS " == 0 || " BACKUP_WORKERS " < " MEMBERS,
       "training.synchronization.backupWorkers", "fewer backup workers than members",
       too_many_backup_workers,
       all({kMembersRead, {"spec.training.synchronization.backupWorkers"}})},
      {"spec",
       BACKUP_WORKERS " == 0 || self.replicaSpecs.?ps.?replication.orValue(1) == 1",
       "replicaSpecs.ps.replication",
       "1 with backup workers: gradients that wait for shard 0 have no second copy",
       copies_with_backup_workers,
       {kRoles + ".ps.replication", "spec.training.synchronization.backupWorkers"}},
      {"spec",
       "!has(self.training) || has(self.training.data.test) || "
       "has(self.training.data.validation) || " EVALUATORS " == 0",
       "replicaSpecs.evaluator",
       "validation or test among spec.training.data for an evaluator to evaluate with",
       nothing_to_evaluate,
       all({kEvaluatorRead, {"spec.training.data.validation", "spec.training.data.test"}})},
      {"spec",
       "!has(self.successPolicy) || !has(self.successPolicy.decidedBy) || "
       "(self.successPolicy.decidedBy == 'chief' ? has(self.replicaSpecs.chief) || "
       "has(self.replicaSpecs.master) : self.replicaSpecs.?worker.?replicas.orValue(0) > 0)",
       "successPolicy.decidedBy", "a role that the job has", decided_by_nobody,
       all({kMembersRead, {"spec.successPolicy.decidedBy"}})},
      {"spec.elastic",
       "self.minReplicas <= self.maxReplicas",
       "minReplicas",
       "minReplicas of at most maxReplicas",
       elastic_backwards,
       {"spec.elastic.minReplicas", "spec.elastic.maxReplicas"}},
      {"spec",
       "!has(self.elastic) || self.elastic.minReplicas > self.elastic.maxReplicas || "
       "(has(self.replicaSpecs.worker) && self.replicaSpecs.worker.replicas "
       ">= "
       "self.elastic.minReplicas && self.replicaSpecs.worker.replicas <= "
       "self.elastic.maxReplicas)",
       "elastic", "workers, between minReplicas and maxReplicas", elastic_without_workers,
       all({kMembersRead, {"spec.elastic.*"}})},
      {"spec",
       "!has(self.elastic) || (self.strategy == 'collective' && has(self.training))",
       "elastic",
       "an elastic group only with the strategy collective and spec.training",
       elastic_without_collectives,
       {"spec.elastic", "spec.strategy", "spec.training"}},
      {"spec",
       "!has(self.elastic) || !has(self.training) || "
       "self.training.data.train.?shard.orValue('record') != 'file'",
       "elastic",
       "training.data.train.shard record with elastic, for files are dealt out once",
       elastic_with_shards_of_files,
       {"spec.elastic", "spec.training.data.train.shard"}},
      {"spec",
       "!self.enableDynamicWorker || !has(self.training)",
       "enableDynamicWorker",
       "false with spec.training, which has elastic for workers that come and go",
       dynamic_worker_with_training,
       {"spec.enableDynamicWorker", "spec.training"}},
      {"spec", "self.?training.?devices.orValue(1) == 1 || " PS " == 0", "training.devices",
       "1 device with parameter servers", devices_with_ps,
       all({kPsRead, {"spec.training.devices"}})},
      {"spec",
       "self.strategy != 'collective' || (" SYNCHRONIZATION "policy.orValue('sync') == 'sync' "
       "&& " BACKUP_WORKERS " == 0)",
       "training.synchronization",
       "for the strategy collective the policy sync, without backup workers",
       synchronization_of_collective,
       {"spec.strategy", "spec.training.synchronization.policy",
        "spec.training.synchronization.backupWorkers"}},
      {"spec.failurePolicy",
       "!has(self.rules) || self.rules.all(r, has(r.onExitCodes) || has(r.onReason))",
       "rules",
       "onExitCodes or onReason in each rule",
       rule_without_match,
       {"spec.failurePolicy.rules.*"}},
      {"spec",
       "!has(self.failurePolicy) || !has(self.failurePolicy.rules) || "
       "self.failurePolicy.rules.all(r, !has(r.roles) || r.roles.all(n, "
       "n == 'ps' ? has(self.replicaSpecs.ps) : n == 'worker' ? has(self.replicaSpecs.worker) : "
       "n == 'evaluator' ? has(self.replicaSpecs.evaluator) : "
       "has(self.replicaSpecs.chief) || has(self.replicaSpecs.master)))",
       "failurePolicy.rules",
       "roles that the job has",
       rule_for_missing_role,
       {kRoles + ".chief", kRoles + ".worker", kRoles + ".ps", kRoles + ".evaluator",
        "spec.failurePolicy.rules.*"}},
      {"spec",
       "self.schedulingPolicy.?minAvailable.orValue(0) == 0 || "
       "self.schedulingPolicy.minAvailable <= " MEMBERS " + " PS " + " EVALUATORS,
       "schedulingPolicy.minAvailable", "no more than there are replicas", more_than_all,
       all({kMembersRead, kPsRead, kEvaluatorRead, {"spec.schedulingPolicy.minAvailable"}})},
      {"spec",
       "self.startupPolicy.order != 'InOrder' || self.schedulingPolicy.gang == 'none' || "
       "self.schedulingPolicy.?minAvailable.orValue(" PLACED_TOGETHER ") <= " FIRST_TO_START,
       "schedulingPolicy.minAvailable",
       "no more than the role has that startupPolicy InOrder starts first, for the others wait "
       "until it is ready",
       gang_in_order,
       all({kMembersRead,
            kPsRead,
            kEvaluatorRead,
            {"spec.schedulingPolicy.minAvailable", "spec.schedulingPolicy.gang",
             "spec.startupPolicy.order", "spec.elastic.*"}})},
      {"spec.managedBy", "self == oldSelf", "", "no change", nullptr},
      {"spec",
       "has(self.training) || [self.replicaSpecs].all(roles, " EACH_ROLE(RUNS_SOMETHING) ")",
       "replicaSpecs",
       "a container with a command or an image in each template, for the job has no spec.training",
       left_to_templates,
       {}},
      {"", STATUS_ALONE " || (" SPEC_KEPT ") || " SUSPENDED, "spec",
       "no change of training, storage, templates, ps.replication, elastic or the set of roles but "
       "while the job is suspended",
       nullptr},
      {"", STATUS_ALONE " || !has(self.spec.training) || (" GROUP_KEPT ") || " SUSPENDED,
       "spec.replicaSpecs",
       "no change of how many ps and workers a job with spec.training has while it runs, but for "
       "the workers of one with spec.elastic: suspend it first (spec.suspend: true), change them "
       "once its condition Suspended is true, and resume it",
       nullptr},
  };
  return table;
}

#undef CHIEFS
#undef MEMBERS
#undef PS
#undef EVALUATORS
#undef FIRST_TO_START
#undef PLACED_TOGETHER
#undef BACKUP_WORKERS
#undef EACH_ROLE
#undef SAME
#undef SAME_ROLE
#undef SAME_COUNT
#undef GROUP_KEPT
#undef COPIES
#undef SPEC_KEPT
#undef STATUS_ALONE
#undef SUSPENDED
#undef RUNS_SOMETHING
#undef SYSTEM_FOLDER

void check_rules(const Document& document, Problems& problems) {
  // Rules are about different things: what one finds keeps no other from being told.
  std::vector<Problem> found_by_rules;
  for (const Rule& rule : rules()) {
    const Json* self = document.find(rule.path);
    if (rule.found == nullptr || self == nullptr || !self->is_object()) continue;
    const auto read = [&](const std::string& path) { return can_be_read(problems, path); };
    if (!std::all_of(rule.reads.begin(), rule.reads.end(), read)) continue;
    const std::string found = rule.found(*self);
    if (found.empty()) continue;
    const bool both = *rule.path != '\0' && *rule.blame != '\0';
    const std::string path = std::string(rule.path) + (both ? "." : "") + rule.blame;
    found_by_rules.push_back(make_problem(document, path, rule.expected, found));
  }
  problems.add(std::move(found_by_rules));
}

}  // namespace muster::api
