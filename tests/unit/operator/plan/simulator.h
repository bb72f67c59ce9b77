#pragma once

#include <string>
#include <vector>

#include "tests/unit/operator/plan/invariants.h"

namespace muster::plan {

// What one schedule came to, so that a test can see that the simulator reaches what it is there
// for.
struct Outcome {
  int succeeded = 0, failed = 0;  // jobs
  int restarts = 0, job_restarts = 0, resumed = 0, writes_lost = 0, late_actions = 0, in_place = 0;
  int cut_off = 0;     // replicas that were given up with their nodes, and lived on
  int returned = 0;    // workers of elastic jobs that were scaled away and came back
  int lengthened = 0;  // jobs that had succeeded and were given more epochs

  Outcome& operator+=(const Outcome& other);
};

// Drives plan() through one random schedule: a job, replicas that start, crash, finish, get evicted
// or hang; a controller whose views are old, whose writes and calls get lost and which is killed
// between them; a user who suspends, resumes and scales, and gives a job more epochs that has
// succeeded; a queue that holds the job; a clock that jumps. Then the faults stop, and the job must
// finish. Everything follows from the seed.
class Simulator {
 public:
  Simulator(uint64_t seed, Faults faults, bool traced = false);

  // Throws Violation, with what led to it if traced.
  Outcome run();

 private:
  struct Action {
    bool is_creation;
    CreateReplica creation;
    RemoveReplica removal;
  };

  void chaos_step();
  void replica_step();
  void user_step();
  bool may_be_lengthened() const;
  void lengthen();
  void scale_step();
  void time_step();
  void controller_round(bool faulty);
  Observed look(bool faulty);
  void act(const Action& action);
  void act_late();
  bool calm_step();
  void calm_down();
  void tell(const std::string& what);

  Dice dice_;
  Faults faults_;
  bool traced_;
  SimulatedWorld world_;
  Invariants invariants_;
  std::vector<Action> late_;   // of a leader that is paused
  std::set<int> scaled_away_;  // indices of an elastic job's workers
  int last_moment_ = 0;        // of the last view
  bool conflict_ = false, invalid_ = false, evaluated_ = false;
  std::optional<Time> look_again_;
  Outcome outcome_;
  std::string trace_;
};

}  // namespace muster::plan
