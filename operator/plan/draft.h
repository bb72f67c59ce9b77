#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operator/plan/values.h"

namespace muster::plan {

// What the policies work on: the job, the view, and the plan as far as it has come. Internal to
// operator/plan: each policy is a function of a Draft in a file of its own; plan.cc gives the
// order.

enum class Stage {
  active,      // replicas should run
  suspending,  // spec.suspend: they should not
  succeeding,  // SuccessCriteriaMet: the ending, in its order
  failing,     // FailureTarget: everybody leaves
  finished,
};

// No time further than this from another is computed with: keeps hostile numbers from overflowing.
inline constexpr int64_t kLongestSeconds = 100LL * 365 * 24 * 3600;
Time later_by(Time time, int64_t seconds);

// Chief and workers compute; ps hold parameters, evaluators look on.
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
  // The first restart decided in this plan, for the Restarting condition.
  std::optional<std::pair<std::string, std::string>> restart_reason_and_message;

  Stage stage() const;
  // Replicas may be created, for all that is known.
  bool accepted() const;

  // How many replicas the job wants of a role; 0 for a role it does not have.
  int desired(Role role) const;
  bool in_range(const ObservedReplica& replica) const {
    return replica.index < desired(replica.role);
  }
  // From before the last RestartJob or resuming.
  bool of_old_run(const ObservedReplica& replica) const { return replica.run < status.run; }

  // Precondition of both: adopt_records() has run, which makes a record for whatever is in view or
  // wanted.
  api::ReplicaRecord& record(Role role, int index);
  const api::ReplicaRecord& record(Role role, int index) const;
  bool is_superseded(const ObservedReplica& replica) const {
    return replica.attempt < record(replica.role, replica.index).attempt;
  }

  // All attempts of one index in view.
  const std::vector<const ObservedReplica*>& attempts(Role role, int index) const;
  // The current attempt, if it is in view, lives in the current run and neither was
  // asked to leave nor is about to be.
  const ObservedReplica* current(Role role, int index) const;
  bool any_live() const;

  // Sets a condition; last_transition moves only when `value` does. The message is cut here
  // (describe.h: bounded), whoever wrote it.
  void set(const std::string& type, bool value, const std::string& reason,
           const std::string& message);
  void note(const std::string& reason, const std::string& message);
  void warn(const std::string& reason, const std::string& message);
  // The plan may differ from `time` on. Times that have passed are ignored.
  void look_again_at(Time time);

 private:
  std::map<std::pair<Role, int>, std::vector<const ObservedReplica*>> by_index_;
};

}  // namespace muster::plan
