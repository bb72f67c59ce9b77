#pragma once

#include <map>
#include <set>
#include <string>

#include "tests/unit/operator/plan/simulated_world.h"

namespace muster::plan {

// How well the simulated controller is informed and how its calls may fare.
enum class Faults {
  // Views lag, but show what was created and never go back; calls and writes get lost.
  lagging,
  // Any mixture of old states of each replica, in any order; replicas vanish.
  reordered,
  // As lagging, and a leader may be paused between its status write and its actions, and carry
  // those out
  // late, when another has taken over.
  paused_leader,
};

// What must hold whatever happens. Keeps its own books on the world, by the policy of the simulated
// jobs (see simulator.cc), to compare with the status. Throws Violation.
class Invariants {
 public:
  explicit Invariants(Faults faults) : faults_(faults) {}

  // A plan as it was made from a job and a view.
  void check_plan(const api::TrainingJob& job, const Observed& view, Time now, const Plan& plan);
  // The status of a plan was stored over the job's.
  void check_written(const api::TrainingJob& job, const Observed& view,
                     const api::JobStatus& after);
  // Before a replica is asked to leave.
  void check_removal(const SimulatedWorld& world, const RemoveReplica& removal) const;
  // Before a replica is created.
  void check_creation(const SimulatedWorld& world, const CreateReplica& creation);
  void check_world(const SimulatedWorld& world) const;

 private:
  void check_counts(const api::TrainingJob& job, const api::JobStatus& before, const Observed& view,
                    const api::JobStatus& after);
  void check_reopening(const api::TrainingJob& job, const api::JobStatus& after);
  bool is_stray(const ObservedReplica& replica) const { return strays_.contains(name_of(replica)); }
  int new_restarts_in_place(const api::TrainingJob& job, const ObservedReplica& replica);
  static std::string name_of(const ObservedReplica& replica);

  Faults faults_;
  int64_t succeeded_with_ = 0;                // epochs, when the job succeeded last
  std::set<std::string> seen_ends_;           // UIDs whose end a stored status was made from
  std::map<std::string, int> seen_in_place_;  // restarts of a UID that one was made from
  std::set<std::string> strays_;              // created late, by a leader that no longer was one
};

// The plan of its own result is empty, and stays so until look_again.
void check_plan_of_own_result(const api::TrainingJob& job, const Observed& view, Time now,
                              const Plan& plan);

}  // namespace muster::plan
