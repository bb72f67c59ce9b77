#include "operator/kube/pods/disruption_budget.h"

#include <algorithm>

#include "common/documents/json.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/pods.h"

namespace muster::kube {

Json disruption_budget_of(const api::TrainingJob& job) {
  const Json& most = member(job.scheduling_policy, "maxUnavailable");
  if (most.is_null()) return nullptr;
  const int64_t stay = std::max<int64_t>(0, api::replicas_of(job) - most.get<int64_t>());
  return {{"apiVersion", "policy/v1"},
          {"kind", "PodDisruptionBudget"},
          {"metadata", belonging_metadata(job, job.name)},
          {"spec",
           {{"minAvailable", stay},
            {"selector", {{"matchLabels", {{kJobLabel, job.name}, {kJobUidLabel, job.uid}}}}},
            {"unhealthyPodEvictionPolicy", "AlwaysAllow"}}}};
}

}  // namespace muster::kube
