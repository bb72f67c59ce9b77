#include "operator/plan/plan.h"

#include "operator/plan/draft.h"
#include "operator/plan/ending.h"
#include "operator/plan/ends.h"
#include "operator/plan/records.h"
#include "operator/plan/replicas.h"
#include "operator/plan/report.h"
#include "operator/plan/restarts.h"
#include "operator/plan/retry.h"
#include "operator/plan/scaling.h"
#include "operator/plan/suspend.h"
#include "operator/plan/time_use.h"

namespace muster::plan {
namespace {

// Plans for a finished job, which does not change any more: replicas that still appear leave and
// are never judged. A job that succeeded under an operator that did not record trained_to gets it
// now.
void plan_after_the_end(Draft& draft) {
  adopt_records(draft);
  remove_replicas(draft);
  draft.status = draft.job.status;
  draft.status.observed_generation = draft.job.generation;
  if (draft.status.is_true("Succeeded") && !draft.status.trained_to)
    draft.status.trained_to = api::length_of(draft.job);
  list_counted(draft);
  enforce_time_to_live(draft);
}

// Chooses the job's folder. A job that is older than this choice keeps the folder that it has.
void choose_folder(Draft& draft) {
  const bool is_new = draft.job.status.conditions.empty();
  if (is_new && !draft.job.training.is_null()) draft.status.storage_folder = folder_of(draft.job);
}

// Chooses the name of the key pair by which the job's replicas identify each other. A job with
// `training` and several replicas gets a new name if it has none, and after a restart of the whole
// job, but not after a suspension. Living replicas keep the key pair that they were created with: a
// job that an older operator started in plaintext stays in plaintext.
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

void plan_before_the_end(Draft& draft) {
  adopt_records(draft);
  choose_folder(draft);
  report_acceptance(draft);
  follow_suspend(draft);
  if (draft.stage() == Stage::active && draft.accepted() && !draft.status.start_time) {
    draft.status.start_time = draft.now;
  }
  let_go_scaled_away(draft);
  count_ends(draft);
  follow_scaling(draft);
  enforce_deadline(draft);
  choose_keys(draft);
  create_replicas(draft);
  end_round(draft);
  conclude(draft);
  remove_replicas(draft);
  report_progress(draft);
  report(draft);
  draft.status.observed_generation = draft.job.generation;
  report_results(draft);
  list_counted(draft);
  enforce_time_to_live(draft);
}

Plan plan_by_stage(const api::TrainingJob& job, const Observed& observed, Time now) {
  Draft draft(job, observed, now);
  if (draft.stage() == Stage::finished) {
    plan_after_the_end(draft);
  } else {
    plan_before_the_end(draft);
  }
  draft.plan.use = use_of_time(draft);
  return std::move(draft.plan);
}

}  // namespace

Plan plan(const api::TrainingJob& job, const Observed& observed, Time now) {
  if (job.deleting || job.managed_by != api::kManagedByMuster) {
    Plan nothing;
    nothing.status = job.status;
    return nothing;
  }
  if (!asks_for_more(job)) return plan_by_stage(job, observed, now);
  api::TrainingJob reopened = job;
  reopened.status = train_on(job);
  Plan plan = plan_by_stage(reopened, observed, now);
  plan.events.insert(
      plan.events.begin(),
      {Event::Kind::normal, "TrainsOn",
       "the job has succeeded with " + describe(*job.status.trained_to) +
           " and trains on: spec.training asks for " + describe(*api::length_of(job))});
  return plan;
}

}  // namespace muster::plan
