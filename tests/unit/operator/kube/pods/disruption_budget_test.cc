#include "operator/kube/pods/disruption_budget.h"

#include <gtest/gtest.h>

#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {
namespace {

api::TrainingJob job_with(const Json& policy) {
  api::TrainingJob job;
  job.name = "mnist";
  job.name_space = "lab";
  job.uid = "3f6c";
  job.scheduling_policy = policy;
  job.replicas[api::Role::ps].replicas = 2;
  job.replicas[api::Role::chief] = {};
  job.replicas[api::Role::worker].replicas = 3;
  return job;
}

TEST(DisruptionBudget, IsMadeOnlyOnRequest) {
  EXPECT_TRUE(disruption_budget_of(job_with(nullptr)).is_null());
  EXPECT_TRUE(disruption_budget_of(job_with({{"gang", "none"}})).is_null());
  EXPECT_TRUE(disruption_budget_of(job_with({{"maxUnavailable", nullptr}})).is_null());
}

TEST(DisruptionBudget, CountsTheReplicasOfAllRolesThatMustStay) {
  const auto stay = [](int most) {
    return disruption_budget_of(job_with({{"maxUnavailable", most}}))["spec"]["minAvailable"];
  };
  EXPECT_EQ(stay(0), 6);
  EXPECT_EQ(stay(1), 5);
  EXPECT_EQ(stay(6), 0);
  EXPECT_EQ(stay(10'000), 0);
}

TEST(DisruptionBudget, IsAboutTheJobsPods) {
  const api::TrainingJob job = job_with({{"maxUnavailable", 1}});
  const Json budget = disruption_budget_of(job);
  const Json labels = pod_of(job, {api::Role::worker, 0, 0, 0}, {})["metadata"]["labels"];
  const Json& selected = budget["spec"]["selector"]["matchLabels"];
  EXPECT_EQ(selected.size(), 2u);
  for (const auto& [label, value] : selected.items()) EXPECT_EQ(labels[label], value);
  EXPECT_EQ(budget["metadata"]["ownerReferences"][0]["uid"], "3f6c");
}

}  // namespace
}  // namespace muster::kube
