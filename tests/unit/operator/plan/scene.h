#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/unit/operator/plan/builders.h"

namespace muster::plan {

// A small world without faults for table tests: plans are carried out at once, replicas do what the
// test says. Every step also checks that the plan of its own result is empty.
class Scene {
 public:
  explicit Scene(const api::TrainingJob& the_job) : job(the_job) {}

  api::TrainingJob job;
  Observed view;
  Time now = at(0);

  Plan step();                      // plan and carry out
  Plan step_after(double seconds);  // the same, later
  void start_all();                 // every pending replica runs and is ready
  void start();                     // step, start_all, step: everything that can run runs

  // The replica of this index that lives (else the last one in view). Fails the test if there is
  // none.
  ObservedReplica& replica(Role role, int index = 0);
  bool lives(Role role, int index = 0) const;
  void succeed(Role role, int index = 0);
  void fail(Role role, int index, std::optional<int> code, const std::string& reason = "",
            const std::string& last_line = "");
  void leave_all(int code = 143);  // whoever was asked to leave ends

  std::string live() const;     // "ps-0 worker-1": those that live, deleting or not
  std::string leaving() const;  // those asked to leave that still live
  const api::Condition& condition(const std::string& type) const;
  bool has(const std::string& type) const { return job.status.is_true(type); }
  std::string reason(const std::string& type) const { return condition(type).reason; }
  const api::ReplicaRecord& record(Role role, int index = 0) const;
};

// "ps-0.0 worker-0.2": role-index.attempt of what a plan creates.
std::string created(const Plan& plan);

}  // namespace muster::plan
