#include "operator/api/overview.h"

#include "common/documents/json.h"
#include "operator/api/disruption.h"

namespace muster::api {

namespace {

bool is_restarted_after_disruption(const JobStatus& status) {
  const Condition* restarting = status.find("Restarting");
  return restarting != nullptr && restarting->status && is_disruption(restarting->reason);
}

}  // namespace

bool has_lost_replicas(const JobStatus& status) {
  const Condition* running = status.find("Running");
  if (running == nullptr || running->status || integer_or(status.progress, "step", 0) == 0) {
    return false;
  }
  const Condition* suspended = status.find("Suspended");
  return suspended == nullptr || suspended->last_transition < running->last_transition;
}

std::string state_word(const JobStatus& status) {
  for (const char* ended : {"Succeeded", "Failed"}) {
    if (status.is_true(ended)) return ended;
  }
  if (status.is_true("FailureTarget")) return "Failing";
  if (status.is_true("SuccessCriteriaMet")) return "Completing";
  if (const Condition* suspended = status.find("Suspended")) {
    if (suspended->status || suspended->reason == "Suspending") return suspended->reason;
  }
  const Condition* accepted = status.find("Accepted");
  const bool refused = accepted != nullptr && !accepted->status && accepted->reason != "Unknown";
  if (refused) return "NotAccepted";
  if (status.is_true("Stalled")) return "Stalled";
  const bool lost = has_lost_replicas(status);
  if (lost && is_restarted_after_disruption(status)) return "Recovering";
  for (const char* running : {"Restarting", "Running"}) {
    if (status.is_true(running)) return running;
  }
  return lost ? "Recovering" : "Pending";
}

std::string ready_text(const JobStatus& status) {
  if (status.replica_statuses.empty()) return "";
  int ready = 0, active = 0;
  for (const auto& [role, counts] : status.replica_statuses) {
    ready += counts.ready;
    active += counts.active;
  }
  return std::to_string(ready) + "/" + std::to_string(active);
}

std::string steps_text(const JobStatus& status) {
  const int64_t step = integer_or(status.progress, "step", -1);
  if (step < 0) return "";
  const int64_t total = integer_or(status.progress, "totalSteps", 0);
  return std::to_string(step) + (total > 0 ? "/" + std::to_string(total) : "");
}

}  // namespace muster::api
