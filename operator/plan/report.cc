#include "operator/plan/report.h"

#include <algorithm>
#include <string>

#include "common/documents/json.h"
#include "operator/plan/describe.h"
#include "operator/plan/replicas.h"
#include "operator/plan/scaling.h"

namespace muster::plan {
namespace {

struct Readiness {
  int wanted = 0, ready = 0;
};

const ObservedReplica* staying(const Draft& draft, Role role, int index) {
  const ObservedReplica* replica = draft.current(role, index);
  return replica && !must_leave(draft, *replica) ? replica : nullptr;
}

api::ReplicaStatus status_of(const Draft& draft, Role role, Readiness& readiness) {
  api::ReplicaStatus status;
  for (const api::ReplicaRecord& record : draft.status.records) {
    if (record.role != role) continue;
    status.restarts += record.restarts;
    if (record.index >= draft.desired(role)) continue;
    status.succeeded += record.succeeded;
    status.failed += record.failed;
    if (record.succeeded || record.failed) continue;
    ++readiness.wanted;
    const ObservedReplica* replica = staying(draft, role, record.index);
    if (!replica) continue;
    ++status.active;
    if (replica->phase == Phase::running && replica->ready) ++status.ready;
  }
  readiness.ready += status.ready;
  for (const CreateReplica& created : draft.plan.create) status.active += created.role == role;
  return status;
}

Readiness report_replicas(Draft& draft) {
  Readiness readiness;
  draft.status.replica_statuses.clear();
  for (const auto& [role, spec] : draft.job.replicas) {
    draft.status.replica_statuses[role] = status_of(draft, role, readiness);
  }
  return readiness;
}

// Returns why the first replica that is not ready is not, if the cluster says it: "worker-1:
// Unschedulable: 0/3 nodes are available: ...".
std::string first_obstacle(const Draft& draft) {
  for (const api::ReplicaRecord& record : draft.status.records) {
    const ObservedReplica* replica = staying(draft, record.role, record.index);
    if (!replica || replica->ready || replica->reason.empty()) continue;
    const std::string stem =
        describe(draft.job, record.role, record.index) + ": " + clean_line(replica->reason) + ": ";
    // The kubelet alternates between two texts for an image that it cannot pull; the first says
    // why.
    const bool pulls = replica->reason == "ImagePullBackOff";
    if (pulls && draft.job.status.cause.starts_with(stem)) return draft.job.status.cause;
    return describe(draft.job, record.role, record.index) + ": " + describe_obstacle(*replica);
  }
  return "";
}

// Returns "quota compute holds the job up", and with its words "...: requested: pods=1, ...".
std::string describe_quota(const std::string& quota, bool with_words) {
  const size_t end = std::min(quota.find(':'), quota.size());
  return "quota " + clean_line(quota.substr(0, end)) + " holds the job up" +
         (with_words ? clean_line(quota.substr(end)) : "");
}

bool is_held_up_by_quota(const Draft& draft) {
  return draft.observed.quota && draft.stage() == Stage::active;
}

// Returns what stands still in the job; "" where nothing does.
std::string stall_of(const Draft& draft) {
  return draft.status.is_true("Stalled") ? draft.status.find("Stalled")->message : "";
}

std::string as_cause(const std::string& message) {
  constexpr size_t kLongestCause = 1000;
  std::string cause = bounded(message, kLongestCause);
  std::ranges::replace(cause, '\n', ' ');
  return cause;
}

std::string cause_of(const Draft& draft) {
  const Stage stage = draft.stage();
  if (draft.status.is_true("FailureTarget")) return draft.status.find("FailureTarget")->message;
  if (const api::Hold* hold = draft.queue_hold(); hold != nullptr && stage == Stage::suspending)
    return hold->message;
  if (stage != Stage::active && stage != Stage::succeeding) return "";
  const api::Condition* accepted = draft.status.find("Accepted");
  if (stage == Stage::active && accepted && !accepted->status) return accepted->message;
  if (is_held_up_by_quota(draft)) return describe_quota(*draft.observed.quota, true);
  const std::string obstacle = first_obstacle(draft);
  return obstacle.empty() ? stall_of(draft) : obstacle;
}

// Writes an event for each new cause. The conditions Accepted, Stalled and Failed have their own
// events. A quota gets no further event when only the numbers in its message change.
void report_cause(Draft& draft) {
  const std::string& before = draft.job.status.cause;
  std::string& cause = draft.status.cause;
  cause = as_cause(cause_of(draft));
  const api::Condition* accepted = draft.status.find("Accepted");
  const bool told_elsewhere =
      (accepted && !accepted->status) || draft.status.is_true("FailureTarget") ||
      cause == as_cause(stall_of(draft)) || draft.stage() == Stage::suspending;
  if (cause.empty() || cause == before || told_elsewhere) return;
  if (!is_held_up_by_quota(draft)) return draft.warn("ReplicaPending", cause);
  if (!before.starts_with(describe_quota(*draft.observed.quota, false))) {
    draft.warn("QuotaExceeded", cause);
  }
}

void report_running(Draft& draft, const Readiness& readiness) {
  const std::string wanted = std::to_string(readiness.wanted);
  switch (draft.stage()) {
    case Stage::suspending:
      return draft.set(
          "Running", false, "Suspended",
          draft.queue_hold() != nullptr ? "its queue holds the job" : "the job is suspended");
    case Stage::succeeding:
    case Stage::failing:
      return draft.set("Running", false, "Finishing", "the job is decided; its replicas stop");
    case Stage::finished:
      return draft.set("Running", false, "Finished", "the job has finished");
    case Stage::active:
      break;
  }
  if (readiness.wanted > 0 && readiness.ready == readiness.wanted) {
    return draft.set(
        "Running", true, "AllReplicasReady",
        readiness.wanted == 1 ? "the replica is ready" : "all " + wanted + " replicas are ready");
  }
  const std::string& cause = draft.status.cause;
  const std::string ready = std::to_string(readiness.ready) + " of " + wanted +
                            " replicas are ready" + (cause.empty() ? "" : "; " + cause);
  if (goes_on_with_fewer(draft)) return draft.set("Running", true, "EnoughReplicasReady", ready);
  const bool by_quota = is_held_up_by_quota(draft);
  draft.set("Running", false, by_quota ? "QuotaExceeded" : "ReplicasNotReady", ready);
}

void report_restarting(Draft& draft) {
  const api::Condition running = *draft.status.find("Running");
  // An elastic group may continue while one of its replicas is replaced.
  if (draft.stage() == Stage::active && draft.restart_reason_and_message && !running.status) {
    const auto& [reason, message] = *draft.restart_reason_and_message;
    return draft.set("Restarting", true, reason, message);
  }
  if (!draft.status.is_true("Restarting")) return;
  if (draft.stage() == Stage::active && !running.status) return;
  draft.set("Restarting", false, running.reason, running.message);
}

void note_requested_checkpoint(Draft& draft) {
  const auto requested_in = [](const Json& progress) -> const Json& {
    return member(progress, "requestedCheckpoint");
  };
  const Json& requested = requested_in(draft.status.progress);
  const std::string request = string_or(requested, "request", "");
  if (request.empty()) return;
  if (request == string_or(requested_in(draft.job.status.progress), "request", "")) return;
  draft.note("CheckpointTaken", "the checkpoint of step " +
                                    std::to_string(integer_or(requested, "step", 0)) +
                                    " was taken as asked for (\"" + clean_line(request) +
                                    "\"): " + clean_line(string_or(requested, "checkpoint", "?")));
}

constexpr const char* kStalled = "Stalled";

std::string describe_stall(const Json& stall) {
  const bool storage = bool_or(stall, "storage", false);
  return clean_line(string_or(stall, "replica", "?")) +
         (storage ? " waits for its storage since " : " has given no sign of life since ") +
         clean_line(string_or(stall, "since", "?")) + ": " +
         clean_line(string_or(stall, "doing", "?"));
}

void report_stalls(Draft& draft) {
  const Json& stalls = member(draft.status.progress, "stalled");
  const bool before = draft.status.is_true(kStalled);
  if (draft.stage() != Stage::active || !stalls.is_array() || stalls.empty()) {
    if (before) draft.set(kStalled, false, "GoesOn", "nothing stands still any more");
    return;
  }
  // Storage is named first, because other stalled work may only be waiting for it.
  const Json* worst = &stalls.front();
  for (const Json& stall : stalls) {
    if (bool_or(*worst, "storage", false)) break;
    if (bool_or(stall, "storage", false)) worst = &stall;
  }
  std::string message = describe_stall(*worst);
  if (stalls.size() > 1) message += "; and " + std::to_string(stalls.size() - 1) + " more";
  const char* const reason = bool_or(*worst, "storage", false) ? "StorageHangs" : "ReplicaHangs";
  draft.set(kStalled, true, reason, message);
  if (!before) draft.warn(reason, message);
}

// Returns a text such as "5 replicas: ps 1, chief 1, worker 2, evaluator 1".
std::string describe_replicas(const Draft& draft) {
  std::string by_role;
  for (const auto& [role, spec] : draft.job.replicas) {
    if (spec.replicas == 0) continue;
    by_role += (by_role.empty() ? "" : ", ") + api::role_name(draft.job, role) + " " +
               std::to_string(spec.replicas);
  }
  const int all = api::replicas_of(draft.job);
  return std::to_string(all) + (all == 1 ? " replica: " : " replicas: ") + by_role;
}

// Writes the events of a job's progress: its replicas are started, and all of them are ready. Ends,
// restarts and suspensions are reported by the functions that decide them.
void note_milestones(Draft& draft) {
  const api::JobStatus& before = draft.job.status;
  if (draft.status.start_time && !before.start_time) {
    draft.note("Started", "the job is started with " + describe_replicas(draft));
  }
  const api::Condition* running = draft.status.find("Running");
  if (running != nullptr && running->status && !before.is_true("Running")) {
    draft.note("Running", running->message);
  }
}

}  // namespace

void report_acceptance(Draft& draft) {
  const Observed& observed = draft.observed;
  const api::Condition* before = draft.status.find("Accepted");
  const bool unknown = before && before->reason == "Unknown";
  const bool new_problem = !before || before->status || unknown;
  if (observed.name_conflict) {
    const std::string message =
        "a name of ours is taken by an object that is not: " + *observed.name_conflict;
    draft.set("Accepted", false, "NameConflict", message);
    if (new_problem) draft.warn("NameConflict", message);
  } else if (observed.invalid_template) {
    draft.set("Accepted", false, "InvalidTemplate", *observed.invalid_template);
    if (new_problem) draft.warn("InvalidTemplate", *observed.invalid_template);
  } else if (observed.unchecked) {
    const bool told = unknown && before->message == bounded(*observed.unchecked);
    draft.set("Accepted", false, "Unknown", *observed.unchecked);
    if (!told) draft.warn("NotChecked", *observed.unchecked);
  } else {
    draft.set("Accepted", true, "Valid", "the job can be run");
  }
}

void report(Draft& draft) {
  const Readiness readiness = report_replicas(draft);
  report_cause(draft);
  report_running(draft, readiness);
  report_restarting(draft);
  const api::Condition* suspended = draft.status.find("Suspended");
  const Stage stage = draft.stage();
  if (stage != Stage::suspending && suspended &&
      (suspended->status || suspended->reason == "Suspending")) {
    draft.set("Suspended", false, "Finishing", "the job is decided");
  }
  note_milestones(draft);
}

void report_results(Draft& draft) {
  const auto succeeded = [&](const api::ReplicaRecord& record) {
    return record.succeeded && leads(draft.job, record.role, record.index);
  };
  if (std::ranges::none_of(draft.status.records, succeeded)) {
    draft.status.results = nullptr;
  } else if (!draft.observed.results.is_null()) {
    draft.status.results = draft.observed.results;
  }
}

void report_progress(Draft& draft) {
  Json& progress = draft.status.progress;
  if (!draft.observed.progress.is_null()) progress = draft.observed.progress;
  const std::string resumed = string_or(progress, "resumed", "");
  if (!resumed.empty() && resumed != string_or(draft.job.status.progress, "resumed", ""))
    draft.note("GoesOn", resumed);
  note_requested_checkpoint(draft);
  report_stalls(draft);
  if (draft.stage() == Stage::active || !progress.is_object()) return;
  for (const char* of_a_job_that_trains : {"examplesPerSecond", "etaSeconds"}) {
    progress.erase(of_a_job_that_trains);
  }
}

}  // namespace muster::plan
