#include "tests/unit/operator/plan/builders.h"

#include <algorithm>

namespace muster::plan {
namespace {

std::string name_of_replica(Role role, int index, int attempt) {
  return std::string(api::name_of(role)) + "-" + std::to_string(index) + "-" +
         std::to_string(attempt);
}

}  // namespace

Time at(double seconds) {
  return Time(std::chrono::hours(24 * 365 * 50)) +
         std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

JobBuilder::JobBuilder() {
  job_.name = "mnist";
  job_.uid = "job-uid";
  job_.training = Json{{"epochs", 1}};
  job_.decided_by = api::DecidedBy::all_workers;
}

JobBuilder& JobBuilder::role(Role role, int replicas) {
  job_.replicas[role].replicas = replicas;
  if (role == Role::chief) job_.decided_by = api::DecidedBy::chief;
  return *this;
}

JobBuilder& JobBuilder::elastic(int min_replicas, int max_replicas) {
  job_.strategy = "collective";
  job_.elastic = api::Elastic{min_replicas, max_replicas};
  return *this;
}

JobBuilder& JobBuilder::own_image() {
  job_.training = nullptr;
  return *this;
}

JobBuilder& JobBuilder::never_restart(Role role) {
  job_.replicas[role].restart_policy = api::RestartPolicy::never;
  return *this;
}

JobBuilder& JobBuilder::decided_by(api::DecidedBy who) {
  job_.decided_by = who;
  return *this;
}

JobBuilder& JobBuilder::rule(std::vector<int> codes, std::vector<std::string> reasons,
                             std::vector<Role> roles, api::FailureAction action) {
  job_.failure_rules.push_back({std::move(codes), std::move(reasons), std::move(roles), action});
  return *this;
}

JobBuilder& JobBuilder::dynamic_workers() {
  job_.enable_dynamic_worker = true;
  return *this;
}

JobBuilder& JobBuilder::backoff_limit(int limit) {
  job_.run_policy.backoff_limit = limit;
  return *this;
}

JobBuilder& JobBuilder::deadline(int64_t seconds) {
  job_.run_policy.active_deadline_seconds = seconds;
  return *this;
}

JobBuilder& JobBuilder::time_to_live(int64_t seconds) {
  job_.run_policy.ttl_seconds_after_finished = seconds;
  return *this;
}

JobBuilder& JobBuilder::evaluator_timeout(int64_t seconds) {
  job_.run_policy.evaluator_timeout_seconds = seconds;
  return *this;
}

JobBuilder& JobBuilder::clean(api::CleanPodPolicy policy) {
  job_.run_policy.clean_pod_policy = policy;
  return *this;
}

JobBuilder& JobBuilder::in_order() {
  job_.startup_order = api::StartupOrder::in_order;
  return *this;
}

JobBuilder& JobBuilder::suspended() {
  job_.suspend = true;
  return *this;
}

void carry_out(const Plan& plan, api::TrainingJob& job, Observed& view) {
  job.status = plan.status;
  for (const RemoveReplica& removal : plan.remove) {
    auto found = std::ranges::find(view.replicas, removal.uid, &ObservedReplica::uid);
    if (found == view.replicas.end()) continue;
    const bool ended = found->phase == Phase::succeeded || found->phase == Phase::failed;
    if (ended) {
      view.replicas.erase(found);
    } else {
      found->deleting = true;
    }
  }
  for (const CreateReplica& creation : plan.create) {
    ObservedReplica replica;
    replica.role = creation.role;
    replica.index = creation.index;
    replica.run = creation.run;
    replica.attempt = creation.attempt;
    replica.uid = name_of_replica(creation.role, creation.index, creation.attempt);
    view.replicas.push_back(std::move(replica));
  }
}

std::string actions_in(const Plan& plan, const api::JobStatus& before) {
  std::string actions;
  for (const CreateReplica& creation : plan.create) {
    actions += " create " + name_of_replica(creation.role, creation.index, creation.attempt);
  }
  for (const RemoveReplica& removal : plan.remove) actions += " remove " + removal.uid;
  for (const Event& event : plan.events) actions += " event " + event.reason;
  if (plan.status != before) actions += " changed status";
  return actions;
}

}  // namespace muster::plan
