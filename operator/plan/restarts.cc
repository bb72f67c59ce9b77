#include "operator/plan/restarts.h"

#include <algorithm>

#include "operator/plan/failure.h"
#include "operator/plan/records.h"

namespace muster::plan {
namespace {

void close_round(Draft& draft) {
  std::ranges::for_each(draft.status.records, leave_round);
}

Time end_of(const Draft& draft, const ObservedReplica* ended) {
  return ended && ended->finished ? *ended->finished : draft.now;
}

// Whether a replica's readiness tells that it works again.
bool is_known_by_readiness(const Draft& draft) {
  return !draft.job.training.is_null();
}

bool joins_round(const Draft& draft, const api::ReplicaRecord& record,
                 const ObservedReplica* ended) {
  const auto may_be_the_cause = [&](const api::ReplicaRecord& other) {
    if (!other.in_round) return false;
    if (is_known_by_readiness(draft) || !other.failed_at) return !record.in_round;
    const bool was_there = ended && ended->started
                               ? &other != &record && *ended->started <= *other.failed_at
                               : !record.in_round;
    return was_there && std::chrono::abs(end_of(draft, ended) - *other.failed_at) <= kRoundTime;
  };
  return std::ranges::any_of(draft.status.records, may_be_the_cause);
}

}  // namespace

bool is_unwanted(const Draft& draft, const ObservedReplica& replica) {
  return draft.of_old_run(replica) || !draft.in_range(replica) ||
         (!draft.may_run() && replica.deleting && !replica.ended_first);
}

void leave_round(api::ReplicaRecord& record) {
  record.in_round = false;
  record.failed_at.reset();
}

bool count_failure(Draft& draft, api::ReplicaRecord& record, const ObservedReplica* ended,
                   const std::string& reason) {
  const bool evaluates = record.role == Role::evaluator;
  const bool joins = !evaluates && joins_round(draft, record, ended);
  const int used = evaluates ? record.restarts : draft.status.restarts;
  if (!joins && used >= draft.job.run_policy.backoff_limit) return false;
  ++record.restarts;
  ++draft.status.restart_reasons[record.role][reason];
  if (evaluates) return true;
  if (!joins) {
    ++draft.status.restarts;
    close_round(draft);
  }
  if (!record.in_round) record.failed_at = end_of(draft, ended);
  record.in_round = true;
  return true;
}

void end_round(Draft& draft) {
  const auto is_well = [&](const api::ReplicaRecord& record) {
    const ObservedReplica* replica = draft.current(record.role, record.index);
    if (!record.in_round || record.succeeded || record.failed ||
        record.index >= draft.desired(record.role))
      return true;
    return is_known_by_readiness(draft) && replica && replica->ready;
  };
  if (std::ranges::all_of(draft.status.records, is_well)) close_round(draft);
}

std::string limit_used_up(const Draft& draft, const std::string& end) {
  const int limit = draft.job.run_policy.backoff_limit;
  const std::string used_up = limit == 0 ? "no restart is allowed"
                              : limit == 1
                                  ? "its one restart is used up"
                                  : "all " + std::to_string(limit) + " restarts are used up";
  return end + "; " + used_up + " (backoffLimit)";
}

void give_up(Draft& draft, api::ReplicaRecord& record, const std::string& reason,
             const std::string& message) {
  record.failed = true;
  const bool may_be_missing = record.role == Role::worker && draft.job.enable_dynamic_worker &&
                              reason == kRestartPolicyNever;
  if (record.role != Role::evaluator && !may_be_missing)
    return decide_failure(draft, reason, message);
  const char* given_up = may_be_missing ? "WorkerGivenUp" : "EvaluatorGivenUp";
  draft.warn(given_up, message + "; the job goes on without it");
}

void restart_everybody(Draft& draft) {
  draft.status.restart_run = ++draft.status.run;
  for (api::ReplicaRecord& record : draft.status.records) {
    if (record.succeeded || record.failed) next_attempt(record);
  }
}

std::chrono::seconds back_off(int failures_in_row) {
  if (failures_in_row <= 0) return std::chrono::seconds(0);
  const int doublings = std::min(failures_in_row - 1, 20);
  return std::min(kFirstBackOff * (1 << doublings), kLongestBackOff);
}

void delay_restart(api::ReplicaRecord& record, const ObservedReplica& ended, Time now) {
  const Time finished = std::min(ended.finished.value_or(now), now);
  const bool is_over = ended.phase == Phase::failed || ended.phase == Phase::succeeded;
  if (is_over && ended.started && finished - *ended.started >= kRanWell) record.failures_in_row = 0;
  record.not_before = finished + back_off(record.failures_in_row);
  record.failures_in_row = std::min(record.failures_in_row, 1000) + 1;
}

bool back_off_is_over(const api::ReplicaRecord& record, Time now) {
  return record.not_before <= now || record.not_before - now > kLongestBackOff;
}

}  // namespace muster::plan
