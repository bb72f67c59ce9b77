#include "tests/unit/operator/plan/invariants.h"

#include <algorithm>

#include "common/documents/json.h"
#include "operator/plan/retry.h"
#include "tests/unit/operator/plan/builders.h"

namespace muster::plan {
namespace {

bool may_run(const api::TrainingJob& job) {
  return !job.suspend && !job.hold;
}

void require(bool holds, const std::string& what) {
  if (!holds) throw Violation(what);
}

std::string name(Role role, int index) {
  return std::string(api::name_of(role)) + "-" + std::to_string(index);
}

std::string text(const std::optional<Time>& time, Time now) {
  return time ? "in " + std::to_string((*time - now).count()) + " ms" : "never";
}

const api::ReplicaRecord* record_of(const api::JobStatus& status, Role role, int index) {
  for (const api::ReplicaRecord& record : status.records) {
    if (record.role == role && record.index == index) return &record;
  }
  return nullptr;
}

int desired(const api::TrainingJob& job, Role role) {
  auto spec = job.replicas.find(role);
  return spec == job.replicas.end() ? 0 : spec->second.replicas;
}

bool is_decided(const api::JobStatus& status) {
  return status.is_true("SuccessCriteriaMet") || status.is_true("FailureTarget");
}

bool is_resuming(const api::TrainingJob& job, const api::JobStatus& before) {
  const api::Condition* suspended = before.find("Suspended");
  return may_run(job) && suspended && (suspended->status || suspended->reason == "Suspending");
}

int new_failures(const api::JobStatus& before, const api::ReplicaRecord& record) {
  const api::ReplicaRecord* old = record_of(before, record.role, record.index);
  return record.restarts - (old ? old->restarts : 0);
}

int counted_failures(const api::JobStatus& before, const api::JobStatus& after) {
  int counted = 0;
  for (const api::ReplicaRecord& record : after.records) {
    if (record.role != Role::evaluator) counted += new_failures(before, record);
  }
  return counted;
}

// A replica may join rounds that others have opened, but each of its own failures is in another
// round, and only the first may be in a round that was open before. Without `training` its
// replacement may fail in the same round too.
void check_rounds(const api::TrainingJob& job, const api::JobStatus& before,
                  const api::JobStatus& after, int failures) {
  const int rounds = after.restarts - before.restarts;
  require(rounds >= 0 && rounds <= failures, "more rounds than failures");
  const bool open = std::ranges::any_of(before.records, &api::ReplicaRecord::in_round);
  require(open || rounds > 0 || failures == 0, "a failure in no round");
  for (const api::ReplicaRecord& record : after.records) {
    if (record.role == Role::evaluator || job.training.is_null()) continue;
    const api::ReplicaRecord* old = record_of(before, record.role, record.index);
    const bool may_join = open && !(old && old->in_round);
    require(rounds >= new_failures(before, record) - may_join,
            name(record.role, record.index) + " failed several times within a round");
  }
}

// Whether the job goes on without the replica when it fails, but for the end that restarts the job.
bool may_be_missing(const api::TrainingJob& job, const ObservedReplica& replica) {
  return job.enable_dynamic_worker && replica.role == Role::worker && replica.exit_code != 8 &&
         job.replicas.at(Role::worker).restart_policy == api::RestartPolicy::never;
}

// The policy of the simulated jobs, in short: what uses up the limit when it ends a replica that
// was wanted. 7 is ignored by a rule.
bool uses_up_limit(const api::TrainingJob& job, const ObservedReplica& replica) {
  if (replica.role == Role::evaluator || replica.phase == Phase::succeeded) return false;
  if (left_on_request(replica) || may_be_missing(job, replica)) return false;
  return replica.reason != "Evicted" && replica.reason != "NodeLost" && replica.exit_code != 7;
}

bool is_crash_looping(const ObservedReplica& replica) {
  return lives(replica) && !replica.deleting && replica.reason == "CrashLoopBackOff";
}

void check_irrevocable(const api::JobStatus& before, const api::JobStatus& after) {
  for (const char* type :
       {"SuccessCriteriaMet", "FailureTarget", "Succeeded", "Failed", "Finished"}) {
    if (!before.is_true(type)) continue;
    require(after.find(type) && *after.find(type) == *before.find(type),
            std::string(type) + " was revoked or changed");
  }
  require(!(after.is_true("SuccessCriteriaMet") && after.is_true("FailureTarget")),
          "decided both ways");
}

void check_finished(const api::JobStatus& status) {
  const bool finished = status.is_true("Finished");
  require(finished == status.completion_time.has_value(),
          "completionTime without Finished or the reverse");
  require(finished == (status.is_true("Succeeded") != status.is_true("Failed")),
          "Finished without Succeeded or Failed, or the reverse");
  if (status.is_true("Succeeded"))
    require(status.is_true("SuccessCriteriaMet"), "Succeeded undecided");
  if (status.is_true("Failed")) require(status.is_true("FailureTarget"), "Failed undecided");
}

api::TrainingJob as_begun(api::TrainingJob job) {
  if (asks_for_more(job)) job.status = train_on(job);
  return job;
}

void check_stays_finished(const api::JobStatus& before, const Plan& plan) {
  if (!before.is_true("Finished")) return;
  require(plan.create.empty(), "a finished job creates replicas");
  api::JobStatus after = plan.status;
  after.counted_uids = before.counted_uids;
  after.observed_generation = before.observed_generation;
  require(after == before, "a finished job's status changed");
}

void check_creations(const api::TrainingJob& job, const Observed& view, const Plan& plan) {
  std::set<std::pair<Role, int>> indices;
  for (const CreateReplica& creation : plan.create) {
    const std::string who = name(creation.role, creation.index);
    require(indices.emplace(creation.role, creation.index).second, who + " is created twice");
    require(creation.index < desired(job, creation.role), who + " is created out of range");
    require(!view.name_conflict && !view.invalid_template, who + " is created unaccepted");
    require(!plan.status.is_true("FailureTarget"), who + " is created by a failing job");
    require(!plan.status.is_true("SuccessCriteriaMet") || creation.role == Role::evaluator,
            who + " is created in the ending");
    require(may_run(job) || is_decided(plan.status), who + " is created while suspended");
    const api::ReplicaRecord* record = record_of(plan.status, creation.role, creation.index);
    require(record && record->attempt == creation.attempt, who + ": attempt not in the status");
    require(!record->succeeded, who + " succeeded and is created again");
    for (const ObservedReplica& replica : view.replicas) {
      const bool same = replica.role == creation.role && replica.index == creation.index;
      require(!same || !lives(replica), who + " is created beside one that lives");
      require(!lives(replica) || replica.run >= creation.run,
              who + " is created beside an older run");
    }
  }
}

// Whether the end of a worker that may come and go says nothing, for scaling has sent it away.
bool is_scaled_away(const api::TrainingJob& job, const api::JobStatus& status,
                    const ObservedReplica& replica) {
  if (!api::workers_may_change(job) || replica.role != Role::worker) return false;
  const api::ReplicaRecord* record = record_of(status, replica.role, replica.index);
  return replica.index >= desired(job, replica.role) ||
         (record && record->replacing == replica.uid);
}

// Nobody who may stay is asked to leave.
void check_removals(const api::TrainingJob& job, const Observed& view, const Plan& plan) {
  const api::JobStatus& status = plan.status;
  for (const RemoveReplica& removal : plan.remove) {
    const auto found = std::ranges::find(view.replicas, removal.uid, &ObservedReplica::uid);
    require(found != view.replicas.end(), "what is not in view is removed");
    const ObservedReplica& replica = *found;
    if (!lives(replica) || is_decided(status) || !may_run(job)) continue;
    const api::ReplicaRecord* record = record_of(status, replica.role, replica.index);
    const bool done = record->succeeded || record->failed;
    const bool superseded = replica.attempt < record->attempt || replica.run < status.run;
    const bool replaced = record->replacing == replica.uid;
    require(done || superseded || replaced || replica.index >= desired(job, replica.role),
            name(replica.role, replica.index) + " is asked to leave for no reason");
  }
  for (const ObservedReplica& replica : view.replicas) {
    const api::ReplicaRecord* before = record_of(job.status, replica.role, replica.index);
    const api::ReplicaRecord* after = record_of(status, replica.role, replica.index);
    const bool was_replaced = before && before->replacing == replica.uid;
    require(was_replaced || after->replacing != replica.uid || is_crash_looping(replica) ||
                is_scaled_away(job, job.status, replica),
            name(replica.role, replica.index) + " is replaced for no reason");
  }
}

void check_replica_statuses(const api::TrainingJob& job, const api::JobStatus& status) {
  int restarts = 0;
  for (const auto& [role, shown] : status.replica_statuses) {
    require(shown.ready <= shown.active && shown.ready >= 0,
            name(role, 0) + ": more ready than active");
    require(status.is_true("Finished") ||
                shown.active + shown.succeeded + shown.failed <= desired(job, role),
            name(role, 0) + ": more replicas shown than wanted");
    if (role != Role::evaluator) restarts += shown.restarts;
  }
  require(restarts >= status.restarts, "restarts by role are fewer than the job's");
}

void check_records(const api::JobStatus& before, const api::JobStatus& after) {
  const bool restarted = after.restart_run > before.restart_run;
  for (const api::ReplicaRecord& old : before.records) {
    const std::string who = name(old.role, old.index);
    const api::ReplicaRecord* record = record_of(after, old.role, old.index);
    require(record, who + ": the record was dropped");
    require(record->attempt >= old.attempt, who + ": the attempt went back");
    require(record->restarts >= old.restarts, who + ": the count went back");
    require(record->attempt <= old.attempt + 1, who + ": an attempt was skipped");
    require(!old.succeeded || record->succeeded != restarted,
            who + ": a success was forgotten, or outlived RestartJob");
  }
  require(after.run >= before.run, "the run went back");
}

// Before look_again time alone changes nothing, at it something changes. (In the ending it may be
// that the evaluator's time is up while others, that were asked to leave, have yet to do so.)
void check_until_look_again(const api::TrainingJob& job, const Observed& view, Time now,
                            const Plan& settled) {
  const auto what_happens_at = [&](Time time) {
    const Plan then = plan(job, view, time);
    return actions_in(then, job.status) +
           (then.remove_job != settled.remove_job ? " remove the job" : "");
  };
  if (!settled.look_again) {
    const std::string late = what_happens_at(now + std::chrono::hours(24 * 365));
    return require(late.empty(), "no look_again, but later the plan is to" + late);
  }
  require(*settled.look_again > now, "look_again is not later");
  const std::string early = what_happens_at(*settled.look_again - std::chrono::milliseconds(1));
  require(early.empty(), "before look_again the plan is to" + early);
  const bool ending = job.status.is_true("SuccessCriteriaMet") && !job.status.is_true("Finished");
  require(ending || !what_happens_at(*settled.look_again).empty(), "nothing happens at look_again");
}

}  // namespace

void check_plan_of_own_result(const api::TrainingJob& job, const Observed& view, Time now,
                              const Plan& first) {
  api::TrainingJob next_job = job;
  Observed next_view = view;
  carry_out(first, next_job, next_view);
  const Plan second = plan(next_job, next_view, now);
  require(actions_in(second, next_job.status).empty(),
          "the plan of its own result is not empty:" + actions_in(second, next_job.status));
  require(second.look_again == first.look_again,
          "look_again is another for the plan's own result: " + text(first.look_again, now) +
              ", then " + text(second.look_again, now));
  require(second.remove_job == first.remove_job, "remove_job is another for the plan's own result");
  check_until_look_again(next_job, next_view, now, second);
}

std::string Invariants::name_of(const ObservedReplica& replica) {
  return name(replica.role, replica.index) + "." + std::to_string(replica.attempt);
}

// A job that has succeeded and is given more to train begins from another status.
void Invariants::check_plan(const api::TrainingJob& planned, const Observed& view, Time now,
                            const Plan& plan) {
  const api::TrainingJob job = as_begun(planned);
  check_irrevocable(job.status, plan.status);
  check_finished(plan.status);
  check_stays_finished(job.status, plan);
  check_creations(job, view, plan);
  check_removals(job, view, plan);
  check_replica_statuses(job, plan.status);
  check_records(job.status, plan.status);
  check_plan_of_own_result(job, view, now, plan);
}

// Those that use up the limit.
int Invariants::new_restarts_in_place(const api::TrainingJob& job, const ObservedReplica& replica) {
  int& seen = seen_in_place_[replica.uid];
  const int restarts = std::max(replica.restarts - seen, 0);
  seen = std::max(seen, replica.restarts);
  const bool ignored = lives(replica) && !uses_up_limit(job, replica);
  return ignored || replica.role == Role::evaluator ? 0 : restarts;
}

void Invariants::check_counts(const api::TrainingJob& job, const api::JobStatus& before,
                              const Observed& view, const api::JobStatus& after) {
  int ends = 0;
  int before_successes = 0;  // counted as far as the limit goes
  for (const ObservedReplica& replica : view.replicas) {
    if (seen_ends_.contains(replica.uid)) continue;
    const api::ReplicaRecord* record = record_of(before, replica.role, replica.index);
    const bool superseded = record && replica.attempt < record->attempt;
    const bool done = record && (record->succeeded || record->failed);
    const bool unwanted = replica.run < before.run || is_resuming(job, before) ||
                          replica.index >= desired(job, replica.role) ||
                          (!may_run(job) && replica.deleting && !replica.ended_first);
    const bool leaving = record && record->replacing == replica.uid;
    if (!superseded && !done && !unwanted && !leaving && may_run(job)) {
      const int in_place = new_restarts_in_place(job, replica);
      (replica.phase == Phase::succeeded ? before_successes : ends) += in_place;
    }
    if (lives(replica) && !(is_crash_looping(replica) && may_run(job))) continue;
    if (!superseded && !done && !unwanted && !leaving && uses_up_limit(job, replica)) ++ends;
    if (!lives(replica) || !unwanted) seen_ends_.insert(replica.uid);
  }
  const int counted = counted_failures(before, after);
  check_rounds(job, before, after, counted);
  if (is_decided(before)) return require(counted == 0, "restarts counted after the decision");
  require(counted <= ends + before_successes,
          "counted " + std::to_string(counted) + " failures of " + std::to_string(ends) + " ends");
  const bool cut_short = is_decided(after) || after.restart_run > before.restart_run;
  require(cut_short || counted >= ends,
          "counted " + std::to_string(counted) + " failures of " + std::to_string(ends) + " ends");
  require(after.restarts <= job.run_policy.backoff_limit, "more restarts than backoffLimit");
}

// Goes by what the job had when it succeeded, not by what the plan says of that.
void Invariants::check_reopening(const api::TrainingJob& job, const api::JobStatus& after) {
  const api::JobStatus& before = job.status;
  const int64_t epochs = integer_or(job.training, "epochs", 0);
  if (after.is_true("Succeeded") && !before.is_true("Succeeded")) succeeded_with_ = epochs;
  if (!before.is_true("Finished") || after.is_true("Finished")) return;
  require(before.is_true("Succeeded"), "a job that has failed is reopened");
  require(epochs > succeeded_with_, "a job is reopened that was given no more epochs");
  for (const api::ReplicaRecord& old : before.records) {
    const api::ReplicaRecord* record = record_of(after, old.role, old.index);
    require(record && record->attempt >= old.attempt, "an attempt is taken back");
  }
}

void Invariants::check_written(const api::TrainingJob& job, const Observed& view,
                               const api::JobStatus& after) {
  check_reopening(job, after);
  const api::JobStatus before = as_begun(job).status;
  check_counts(job, before, view, after);
  for (const ObservedReplica& replica : view.replicas) {
    if (lives(replica)) continue;
    require(std::ranges::find(after.counted_uids, replica.uid) != after.counted_uids.end(),
            name_of(replica) + " has ended and is not in counted_uids");
    if (replica.phase != Phase::succeeded || is_decided(before)) continue;
    const api::ReplicaRecord* record = record_of(after, replica.role, replica.index);
    const bool proven = !job.training.is_null() || !left_on_request(replica);
    const api::ReplicaRecord* old = record_of(before, replica.role, replica.index);
    const bool current = old && old->attempt == replica.attempt && !old->failed &&
                         !is_scaled_away(job, before, replica);
    require(!proven || !current || replica.run < after.restart_run || record->succeeded,
            name_of(replica) + ": its success was dropped");
  }
}

void Invariants::check_removal(const SimulatedWorld& world, const RemoveReplica& removal) const {
  auto found = std::ranges::find(world.replicas(), removal.uid, &ObservedReplica::uid);
  if (found == world.replicas().end()) return;
  const ObservedReplica& replica = *found;
  const api::ReplicaRecord* record = record_of(world.job.status, replica.role, replica.index);
  const bool normal = faults_ == Faults::lagging && replica.role == Role::ps && lives(replica) &&
                      record->attempt == replica.attempt && record->replacing.empty() &&
                      !record->failed && replica.index < desired(world.job, Role::ps);
  if (!normal) return;
  for (const ObservedReplica& other : world.replicas()) {
    const bool member = other.role == Role::chief || other.role == Role::worker;
    const bool of_another_run = other.run > replica.run;
    if (world.was_cut_off(other.uid)) continue;  // it counts as ended
    require(!member || !lives(other) || of_another_run,
            name_of(replica) + " is stopped before " + name_of(other));
    const bool evaluates = world.job.status.is_true("SuccessCriteriaMet") &&
                           other.role == Role::evaluator && lives(other);
    require(!evaluates || of_another_run, name_of(replica) + " is stopped before the evaluator");
  }
}

void Invariants::check_creation(const SimulatedWorld& world, const CreateReplica& creation) {
  const Observed truth = world.view_of(world.newest_moment());
  const Plan fresh = plan(world.job, truth, world.now);
  const bool is_current = std::ranges::find(fresh.create, creation) != fresh.create.end();
  if (faults_ == Faults::paused_leader && !is_current) {
    strays_.insert(name(creation.role, creation.index) + "." + std::to_string(creation.attempt));
    return;
  }
  for (const ObservedReplica& replica : world.replicas()) {
    if (replica.role != creation.role || replica.index != creation.index) continue;
    require(is_stray(replica) || replica.attempt == creation.attempt ||
                seen_ends_.contains(replica.uid),
            name_of(replica) + " has a successor before its end was seen");
  }
}

void Invariants::check_world(const SimulatedWorld& world) const {
  std::set<std::pair<Role, int>> alive;
  for (const ObservedReplica& replica : world.replicas()) {
    // No index has two live replicas, but where one was given up with its node, was taken for ended
    // and is heard of again: it is asked to leave, and its end counts nothing.
    if (!lives(replica) || is_stray(replica) || world.was_cut_off(replica.uid)) continue;
    require(alive.emplace(replica.role, replica.index).second,
            "two live replicas of " + name(replica.role, replica.index));
    require(faults_ != Faults::lagging || !world.job.status.is_true("Finished"),
            name_of(replica) + " lives in a finished job");
    require(
        faults_ != Faults::lagging || may_run(world.job) || !world.job.status.is_true("Suspended"),
        name_of(replica) + " lives in a suspended job");
  }
}

}  // namespace muster::plan
