#include "operator/plan/keys.h"

namespace muster::plan {

void choose_keys(Draft& draft) {
  const api::TrainingJob& job = draft.job;
  std::optional<api::Security>& security = draft.status.security;
  if (job.training.is_null() || draft.stage() != Stage::active) return;
  const bool has_keys = !draft.status.keys().empty();
  const bool restarted = has_keys && security->restart_run != draft.status.restart_run;
  if (draft.any_live() && !restarted) return;
  if (api::replicas_of(job) <= 1 && !api::workers_may_change(job)) {
    security.reset();
  } else if (job.transport == api::Transport::none) {
    security = api::Security{};
  } else if (!has_keys || restarted) {
    security = {job.name + "-tls-" + draft.observed.nonce, draft.status.restart_run};
  }
}

}  // namespace muster::plan
