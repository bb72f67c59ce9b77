#include "operator/plan/draft.h"

#include <algorithm>
#include <stdexcept>

#include "operator/plan/describe.h"

namespace muster::plan {
namespace {

bool before(const api::ReplicaRecord& record, const std::pair<Role, int>& key) {
  return std::pair(record.role, record.index) < key;
}

}  // namespace

Time later_by(Time time, int64_t seconds) {
  return time + std::chrono::seconds(std::clamp<int64_t>(seconds, 0, kLongestSeconds));
}

Draft::Draft(const api::TrainingJob& the_job, const Observed& the_view, Time the_time)
    : job(the_job), observed(the_view), now(the_time), status(plan.status) {
  status = job.status;
  for (const ObservedReplica& replica : observed.replicas) {
    by_index_[{replica.role, replica.index}].push_back(&replica);
  }
}

Stage Draft::stage() const {
  if (status.is_true("Finished")) return Stage::finished;
  if (status.is_true("FailureTarget")) return Stage::failing;
  if (status.is_true("SuccessCriteriaMet")) return Stage::succeeding;
  return may_run() ? Stage::active : Stage::suspending;
}

bool Draft::accepted() const {
  const api::Condition* condition = status.find("Accepted");
  return condition && (condition->status || condition->reason == "Unknown");
}

int Draft::desired(Role role) const {
  auto spec = job.replicas.find(role);
  return spec == job.replicas.end() ? 0 : spec->second.replicas;
}

const api::ReplicaRecord& Draft::record(Role role, int index) const {
  auto found = std::lower_bound(status.records.begin(), status.records.end(),
                                std::pair(role, index), before);
  if (found == status.records.end() || found->role != role || found->index != index) {
    throw std::logic_error("plan: no record of replica " + std::to_string(index));
  }
  return *found;
}

api::ReplicaRecord& Draft::record(Role role, int index) {
  return const_cast<api::ReplicaRecord&>(std::as_const(*this).record(role, index));
}

const std::vector<const ObservedReplica*>& Draft::attempts(Role role, int index) const {
  static const std::vector<const ObservedReplica*> none;
  auto found = by_index_.find({role, index});
  return found == by_index_.end() ? none : found->second;
}

const ObservedReplica* Draft::current(Role role, int index) const {
  for (const ObservedReplica* replica : attempts(role, index)) {
    if (is_live(*replica) && !replica->deleting && !of_old_run(*replica) &&
        !is_superseded(*replica) && record(role, index).replacing != replica->uid) {
      return replica;
    }
  }
  return nullptr;
}

bool Draft::any_live() const {
  return std::ranges::any_of(observed.replicas, is_live);
}

void Draft::set(const std::string& type, bool value, const std::string& reason,
                const std::string& message) {
  auto found = std::ranges::find(status.conditions, type, &api::Condition::type);
  if (found == status.conditions.end()) {
    status.conditions.push_back({type, value, reason, bounded(message), now});
    return;
  }
  if (found->status != value) found->last_transition = now;
  found->status = value;
  found->reason = reason;
  found->message = bounded(message);
}

void Draft::note(const std::string& reason, const std::string& message) {
  plan.events.push_back({Event::Kind::normal, reason, message});
}

void Draft::warn(const std::string& reason, const std::string& message) {
  plan.events.push_back({Event::Kind::warning, reason, message});
}

void Draft::look_again_at(Time time) {
  if (time > now && (!plan.look_again || time < *plan.look_again)) plan.look_again = time;
}

}  // namespace muster::plan
