#include "operator/kube/cluster/job_states.h"

#include <gtest/gtest.h>

namespace muster::kube {
namespace {

api::JobStatus status_with(const std::string& condition) {
  api::JobStatus status;
  api::Condition known;
  known.type = condition;
  known.status = true;
  status.conditions.push_back(known);
  return status;
}

TEST(JobStates, CountsEachJobInItsLastState) {
  using Counts = std::map<std::string, int>;
  JobStates states;
  EXPECT_EQ(states.counts(), Counts());
  states.note("a", {});
  states.note("b", {});
  EXPECT_EQ(states.counts(), (Counts{{"Pending", 2}}));
  states.note("a", status_with("Running"));
  states.note("a", status_with("Running"));
  EXPECT_EQ(states.counts(), (Counts{{"Pending", 1}, {"Running", 1}}));
  states.forget("b");
  states.forget("b");
  states.note("a", status_with("Failed"));
  EXPECT_EQ(states.counts(), (Counts{{"Failed", 1}, {"Pending", 0}, {"Running", 0}}));
}

TEST(JobStates, KnowWhoHasFinished) {
  JobStates states;
  states.note("a", status_with("Succeeded"));
  EXPECT_FALSE(states.is_finished("a")) << "its replicas are stopped";
  states.note("a", status_with("Finished"));
  EXPECT_TRUE(states.is_finished("a"));
  EXPECT_FALSE(states.is_finished("b"));
}

}  // namespace
}  // namespace muster::kube
