#include "operator/plan/time_use.h"

#include <algorithm>

#include "operator/api/overview.h"

namespace muster::plan {
namespace {

// Returns why this living replica is not ready.
TimeUse obstacle_of(const ObservedReplica& replica) {
  if (replica.reason == "SchedulingGated") return TimeUse::queued;
  if (replica.reason == "Unschedulable") return TimeUse::unschedulable;
  if (replica.phase != Phase::pending || replica.started) return TimeUse::starting;
  return replica.node.empty() ? TimeUse::starting : TimeUse::pulling;
}

// Returns what the replicas of an active job wait for; computing if all of them are ready. The
// order of the enum is the order in which a replica comes to run: the first obstacle counts.
TimeUse use_of_replicas(const Draft& draft) {
  TimeUse use = TimeUse::computing;
  bool lost = draft.status.is_true("Restarting") || api::has_lost_replicas(draft.status);
  // While it is not known whether the cluster takes pods of the job, it takes none.
  const TimeUse missing =
      draft.status.is_true("Accepted") ? TimeUse::starting : TimeUse::unschedulable;
  for (const api::ReplicaRecord& record : draft.status.records) {
    if (record.index >= draft.desired(record.role) || record.succeeded || record.failed) continue;
    // A training does not wait for its evaluator.
    if (record.role == Role::evaluator && !draft.job.training.is_null()) continue;
    const ObservedReplica* replica = draft.current(record.role, record.index);
    if (replica && replica->ready) continue;
    lost = lost || record.restarts > 0 || record.restarts_in_place > 0;
    use = std::min(use, replica ? obstacle_of(*replica) : missing);
  }
  const bool is_being_placed = use == TimeUse::queued || use == TimeUse::unschedulable;
  return lost && use != TimeUse::computing && !is_being_placed ? TimeUse::lost : use;
}

}  // namespace

TimeUse use_of_time(const Draft& draft) {
  switch (draft.stage()) {
    case Stage::finished:
    case Stage::succeeding:
    case Stage::failing:
      return TimeUse::stopping;
    case Stage::suspending:
      return draft.queue_hold() != nullptr && !draft.status.start_time ? TimeUse::queued
                                                                       : TimeUse::suspended;
    case Stage::active:
      break;
  }
  if (draft.observed.quota) return TimeUse::queued;
  if (!draft.accepted()) return TimeUse::unschedulable;
  const TimeUse use = use_of_replicas(draft);
  // Only its leading replica knows when a training computes.
  const bool is_training = !draft.job.training.is_null();
  return is_training && use == TimeUse::computing ? TimeUse::starting : use;
}

}  // namespace muster::plan
