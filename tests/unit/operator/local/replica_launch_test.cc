#include "operator/local/replica_launch.h"

#include <gtest/gtest.h>

namespace muster::local {
namespace {

using api::Role;

api::TrainingJob job_of(std::map<Role, int> replicas) {
  api::TrainingJob job;
  for (const auto& [role, count] : replicas) job.replicas[role].replicas = count;
  return job;
}

TEST(ThreadsOfEach, ShareTheMachineAmongThoseThatCompute) {
  struct Case {
    std::map<Role, int> replicas;
    int cpus, threads;
  };
  const Case cases[] = {
      {{{Role::chief, 1}}, 8, 0},
      {{{Role::ps, 1}, {Role::chief, 1}, {Role::worker, 1}, {Role::evaluator, 1}}, 2, 1},
      {{{Role::ps, 2}, {Role::worker, 3}}, 8, 2},
      {{{Role::ps, 1}, {Role::worker, 9}}, 4, 1},
      {{{Role::chief, 1}, {Role::evaluator, 1}}, 4, 4},
      {{{Role::chief, 1}, {Role::worker, 0}}, 4, 0},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(threads_of_each(job_of(c.replicas), c.cpus), c.threads)
        << c.cpus << " CPUs, case " << (&c - cases);
  }
}

}  // namespace
}  // namespace muster::local
