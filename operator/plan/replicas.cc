#include "operator/plan/replicas.h"

#include <algorithm>

#include "operator/plan/back_off.h"
#include "operator/plan/cleanup.h"
#include "operator/plan/startup.h"
#include "operator/plan/success.h"

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

// Whether an evaluator lives, or may be started (again) before its time is up.
bool evaluator_is_due(const Draft& draft) {
  for (int index = 0; index < draft.desired(Role::evaluator); ++index) {
    if (evaluator_may_start(draft, index)) return true;
  }
  return std::ranges::any_of(draft.observed.replicas, [](const ObservedReplica& replica) {
    return is_live(replica) && replica.role == Role::evaluator;
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
