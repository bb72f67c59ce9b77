#include "operator/kube/cluster/job_view.h"

#include <algorithm>
#include <cctype>

#include "common/documents/json.h"
#include "common/exit_code.h"
#include "operator/api/overview.h"

namespace muster::kube {

namespace {

constexpr size_t kLongestCause = 64;

bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= kLongestCause &&
         std::isupper(static_cast<unsigned char>(text.front())) != 0 &&
         std::ranges::all_of(
             text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

// Returns the reason in status.cause, such as "worker-1: Unschedulable: 0/3 nodes ...".
std::string reason_in(const std::string& cause) {
  const size_t begin = cause.find(": ");
  if (begin == std::string::npos) return "";
  const std::string rest = cause.substr(begin + 2);
  const std::string word = rest.substr(0, rest.find(':'));
  return is_word(word) ? word : "";
}

void note_waiting(JobView& view, api::Time created, const api::JobStatus& status) {
  const auto waits = [&](const char* type, const std::string& cause) {
    const api::Condition* condition = status.find(type);
    view.cause = cause.empty() && condition != nullptr ? condition->reason : cause;
    view.waits_since = condition != nullptr ? condition->last_transition : created;
  };
  const std::string& state = view.state;
  if (state == "NotAccepted") return waits("Accepted", "");
  if (state == "Stalled") return waits("Stalled", "");
  if (state == "Queued" || state == "Preempted" || state == "Evicted" || state == "Deactivated")
    return waits("Suspended", "");
  if (state != "Pending" && state != "Restarting" && state != "Recovering") return;
  const api::Condition* running = status.find("Running");
  if (running != nullptr && running->reason == "QuotaExceeded") return waits("Running", "");
  const api::Condition* accepted = status.find("Accepted");
  if (accepted != nullptr && !accepted->status) return waits("Accepted", "NotChecked");
  const std::string reason = reason_in(status.cause);
  waits("Running", !reason.empty() ? reason : state == "Pending" ? "Starting" : state);
}

void note_replicas(JobView& view, const api::JobStatus& status) {
  for (const auto& [role, counts] : status.replica_statuses)
    view.replicas[role] = {0, counts.ready, counts.restarts};
  for (const auto& [role, reasons] : status.restart_reasons)
    view.replicas[role].restarts_by_reason = reasons;
  for (const api::ReplicaRecord& record : status.records) {
    const auto group = status.group.find(record.role);
    const bool desired = group == status.group.end() || record.index < group->second;
    view.replicas[record.role].wanted += desired && !record.succeeded && !record.failed;
  }
}

// The replica that has ended the job is one that failed. Others may have failed after it: a code
// with which no replica is started again decides.
std::optional<int> exit_code_of(const api::JobStatus& status) {
  std::optional<int> found;
  for (const api::ReplicaRecord& record : status.records) {
    if (!record.failed || !record.exit_code || *record.exit_code == kSuccess) continue;
    if (!found || (is_permanent(*record.exit_code) && !is_permanent(*found)))
      found = record.exit_code;
  }
  return found;
}

}  // namespace

JobView view_of(const std::string& name_space, const std::string& name, api::Time created,
                const api::JobStatus& status) {
  JobView view;
  view.name_space = name_space;
  view.name = name;
  view.state = api::state_word(status);
  if (const api::Condition* finished = status.find("Finished"); finished && finished->status) {
    view.end_reason = finished->reason;
    if (status.is_true("Failed")) view.exit_code = exit_code_of(status);
    return view;
  }
  note_waiting(view, created, status);
  note_replicas(view, status);
  if (const int64_t step = integer_or(status.progress, "step", -1); step >= 0) view.step = step;
  if (const double eta = number_or(status.progress, "etaSeconds", -1); eta >= 0) view.eta = eta;
  return view;
}

}  // namespace muster::kube
