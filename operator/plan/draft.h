#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operator/plan/values.h"

namespace muster::plan {

// The object that the policies work on: the job, the view, and the plan so far. Internal to
// operator/plan: each policy is a function of a Draft in a file of its own; plan.cc gives the
// order.

enum class Stage {
  active,      // replicas should run
  suspending,  // spec.suspend is set or a queue holds the job: replicas should not run
  succeeding,  // SuccessCriteriaMet: replicas end in order
  failing,     // FailureTarget: all replicas leave
  finished,
};

// The largest difference of two times in computations. The limit keeps hostile numbers from
// overflowing.
inline constexpr int64_t kLongestSeconds = 100LL * 365 * 24 * 3600;
Time later_by(Time time, int64_t seconds);

// Whether the role computes: chief and workers do; ps hold parameters, evaluators only evaluate.
inline bool is_member(Role role) {
  return role == Role::chief || role == Role::worker;
}

struct Draft {
  Draft(const api::TrainingJob& job, const Observed& observed, Time now);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const api::TrainingJob& job;
  const Observed& observed;
  const Time now;
  Plan plan;
  api::JobStatus& status;  // plan.status
  // The reason and message of the first restart decided in this plan, for the Restarting condition.
  std::optional<std::pair<std::string, std::string>> restart_reason_and_message;

  Stage stage() const;
  // Whether the job may have replicas: nobody has suspended it, and no queue holds it.
  bool may_run() const { return !job.suspend && !job.hold; }
  // Returns why a queue holds the job; null if none does, or if somebody has suspended it anyway.
  const api::Hold* queue_hold() const { return job.hold && !job.suspend ? &*job.hold : nullptr; }
  // Whether replicas may be created, as far as the plan knows.
  bool accepted() const;

  // Returns how many replicas of a role the job wants; 0 for a role it does not have.
  int desired(Role role) const;
  bool in_range(const ObservedReplica& replica) const {
    return replica.index < desired(replica.role);
  }
  // Whether the replica is from before the last RestartJob or resuming.
  bool of_old_run(const ObservedReplica& replica) const { return replica.run < status.run; }

  // Precondition of both: adopt_records() has run, which makes a record for every replica in view
  // or wanted.
  api::ReplicaRecord& record(Role role, int index);
  const api::ReplicaRecord& record(Role role, int index) const;
  bool is_superseded(const ObservedReplica& replica) const {
    return replica.attempt < record(replica.role, replica.index).attempt;
  }

  // Returns all attempts of one index in view.
  const std::vector<const ObservedReplica*>& attempts(Role role, int index) const;
  // Returns the current attempt if it is in view, lives in the current run and neither was asked to
  // leave nor is about to be; else nullptr.
  const ObservedReplica* current(Role role, int index) const;
  bool any_live() const;

  // Sets a condition; last_transition changes only when `value` does. The message is cut here
  // (describe.h: bounded), whichever policy wrote it.
  void set(const std::string& type, bool value, const std::string& reason,
           const std::string& message);
  void note(const std::string& reason, const std::string& message);
  void warn(const std::string& reason, const std::string& message);
  // Notes that the plan may differ from `time` on. Times that have passed are ignored.
  void look_again_at(Time time);

 private:
  std::map<std::pair<Role, int>, std::vector<const ObservedReplica*>> by_index_;
};

}  // namespace muster::plan
