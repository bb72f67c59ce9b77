#include "operator/plan/cleanup.h"

namespace muster::plan {

bool is_forgotten(const Draft& draft, const ObservedReplica& ended) {
  switch (draft.job.run_policy.clean_pod_policy) {
    case api::CleanPodPolicy::none:
      return false;
    case api::CleanPodPolicy::all:
      if (draft.stage() == Stage::finished) return true;
      break;
    case api::CleanPodPolicy::running:
      break;
  }
  return draft.is_superseded(ended);
}

}  // namespace muster::plan
