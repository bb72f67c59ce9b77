#pragma once

#include <string>
#include <vector>

#include "operator/plan/plan.h"

namespace muster::plan {

// Jobs and replicas for tests: make_job().workers(2).ps(1).backoff_limit(3).

Time at(double seconds);  // since the tests' beginning of time

class JobBuilder {
 public:
  JobBuilder();
  JobBuilder& ps(int replicas) { return role(Role::ps, replicas); }
  JobBuilder& chief(int replicas = 1) { return role(Role::chief, replicas); }
  JobBuilder& workers(int replicas) { return role(Role::worker, replicas); }
  JobBuilder& evaluator(int replicas = 1) { return role(Role::evaluator, replicas); }
  JobBuilder& role(Role role, int replicas);
  JobBuilder& elastic(int min_replicas, int max_replicas);
  JobBuilder& dynamic_workers();
  JobBuilder& own_image();  // no `training`
  JobBuilder& never_restart(Role role);
  JobBuilder& decided_by(api::DecidedBy who);
  JobBuilder& rule(std::vector<int> codes, std::vector<std::string> reasons,
                   std::vector<Role> roles, api::FailureAction action);
  JobBuilder& backoff_limit(int limit);
  JobBuilder& deadline(int64_t seconds);
  JobBuilder& time_to_live(int64_t seconds);
  JobBuilder& evaluator_timeout(int64_t seconds);
  JobBuilder& clean(api::CleanPodPolicy policy);
  JobBuilder& in_order();
  JobBuilder& suspended();
  operator api::TrainingJob() const { return job_; }  // NOLINT: a builder is its job

 private:
  api::TrainingJob job_;
};

inline JobBuilder make_job() {
  return {};
}
// Every role but master and task.
inline JobBuilder full_job() {
  return make_job().ps(1).chief().workers(2).evaluator();
}

// Carries a plan out on a view at once and without fault: the status is written, `create` appears
// as pending, `remove` as deleting (or gone, where it had ended).
void carry_out(const Plan& plan, api::TrainingJob& job, Observed& view);

// What of a plan is more than nothing: "" if the status is `before` and there is no action and no
// event.
std::string actions_in(const Plan& plan, const api::JobStatus& before);

}  // namespace muster::plan
