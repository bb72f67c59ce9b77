#include "operator/plan/replicas.h"

#include <algorithm>

#include "operator/plan/ending.h"
#include "operator/plan/restarts.h"

namespace muster::plan {
namespace {

bool any_old_live(const Draft& draft) {
  return std::ranges::any_of(draft.observed.replicas, [&](const ObservedReplica& replica) {
    return is_live(replica) && draft.of_old_run(replica);
  });
}

bool any_member_live(const Draft& draft, bool of_old_run_only) {
  return std::ranges::any_of(draft.observed.replicas, [&](const ObservedReplica& replica) {
    return is_live(replica) && is_member(replica.role) &&
           (!of_old_run_only || draft.of_old_run(replica));
  });
}

bool has_place(const Draft& draft, Role role, int index) {
  const api::ReplicaRecord& record = draft.record(role, index);
  if (record.succeeded || record.failed) return false;
  return std::ranges::none_of(draft.attempts(role, index), [&](const ObservedReplica* replica) {
    return is_live(*replica) || replica->attempt == record.attempt;
  });
}

void create(Draft& draft, Role role, int index) {
  if (!has_place(draft, role, index)) return;
  const api::ReplicaRecord& record = draft.record(role, index);
  if (!back_off_is_over(record, draft.now)) return draft.look_again_at(record.not_before);
  draft.plan.create.push_back({role, index, draft.status.run, record.attempt});
}

bool must_leave_ending(const Draft& draft, const ObservedReplica& replica) {
  if (replica.role == Role::ps) {
    return !any_member_live(draft, false) && !evaluator_is_due(draft);
  }
  if (draft.of_old_run(replica)) return true;
  if (replica.role == Role::evaluator) return !evaluator_may_run(draft, replica.index);
  const Time farewell = later_by(*draft.status.final_checkpoint_time, kFarewellSeconds);
  const bool may_linger = !draft.job.training.is_null() && replica.phase == Phase::running;
  return !may_linger || draft.now >= farewell;
}

// Notes the times at which the plan changes while the job is succeeding.
void look_again_in_ending(Draft& draft) {
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (!is_live(replica) || replica.deleting) continue;
    if (is_member(replica.role) && !must_leave(draft, replica)) {
      draft.look_again_at(later_by(*draft.status.final_checkpoint_time, kFarewellSeconds));
    }
  }
  if (evaluator_is_due(draft)) draft.look_again_at(evaluator_limit(draft));
}

bool is_ready(const Draft& draft, Role role) {
  for (int index = 0; index < draft.desired(role); ++index) {
    const ObservedReplica* replica = draft.current(role, index);
    const bool ready = replica && replica->phase == Phase::running && replica->ready;
    const api::ReplicaRecord& record = draft.record(role, index);
    if (!ready && !record.succeeded && !record.failed) return false;
  }
  return true;
}

// Whether replicas of the role may be created. With startupPolicy InOrder, every replica of the
// roles before it must be ready (or have succeeded). Always true with order Any.
bool may_start(const Draft& draft, Role role) {
  if (draft.job.startup_order == api::StartupOrder::any) return true;
  for (Role earlier : api::kRoles) {
    if (earlier == role) break;
    if (!is_ready(draft, earlier)) return false;
  }
  return true;
}

// Whether an ended replica should be removed, by cleanPodPolicy:
// - Running: attempts that a later attempt has replaced are removed; the last attempt of each index
//   stays, with its logs;
// - All: as Running, and when the job has finished all replicas are removed;
// - None: no replica is removed, not even a replaced attempt.
//
// Replicas that live when a job is decided are stopped under any policy, so a finished job has no
// living replicas.
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

}  // namespace

bool lacks_replicas(const api::TrainingJob& job, const Observed& observed) {
  const auto is_done = [&](Role role, int index) {
    return std::ranges::any_of(job.status.records, [&](const api::ReplicaRecord& record) {
      return record.role == role && record.index == index && (record.succeeded || record.failed);
    });
  };
  const auto is_there = [&](Role role, int index) {
    return std::ranges::any_of(observed.replicas, [&](const ObservedReplica& replica) {
      return replica.role == role && replica.index == index && is_live(replica);
    });
  };
  for (const auto& [role, spec] : job.replicas) {
    for (int index = 0; index < spec.replicas; ++index) {
      if (!is_done(role, index) && !is_there(role, index)) return true;
    }
  }
  return false;
}

void create_replicas(Draft& draft) {
  const Stage stage = draft.stage();
  if (stage == Stage::succeeding) look_again_in_ending(draft);
  if (!draft.accepted() || any_old_live(draft)) return;
  for (Role role : api::kRoles) {
    if (stage == Stage::active && !may_start(draft, role)) continue;
    for (int index = 0; index < draft.desired(role); ++index) {
      const bool evaluates = role == Role::evaluator && evaluator_may_start(draft, index);
      if (stage == Stage::active || evaluates) create(draft, role, index);
    }
  }
}

bool must_leave(const Draft& draft, const ObservedReplica& replica) {
  const Stage stage = draft.stage();
  if (stage == Stage::finished) return true;
  const api::ReplicaRecord& record = draft.record(replica.role, replica.index);
  if (draft.is_superseded(replica) || !draft.in_range(replica)) return true;
  if (record.succeeded || record.failed || record.replacing == replica.uid) return true;
  if (stage == Stage::succeeding) return must_leave_ending(draft, replica);
  const bool only_old = stage == Stage::active;
  if (only_old && !draft.of_old_run(replica)) return false;
  return replica.role != Role::ps || !any_member_live(draft, only_old);
}

void remove_replicas(Draft& draft) {
  for (const ObservedReplica& replica : draft.observed.replicas) {
    if (replica.deleting) continue;
    if (is_live(replica) ? must_leave(draft, replica) : is_forgotten(draft, replica)) {
      draft.plan.remove.push_back({replica.role, replica.index, replica.uid});
    }
  }
}

}  // namespace muster::plan
