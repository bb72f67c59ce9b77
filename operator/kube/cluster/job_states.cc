#include "operator/kube/cluster/job_states.h"

#include <utility>

#include "operator/api/overview.h"
#include "operator/plan/draft.h"

namespace muster::kube {

void JobStates::note(const Job& job, const api::JobStatus& status, api::Time now) {
  const std::string state = api::state_word(status);
  const api::Condition* end = status.find("Finished");
  const bool finished = end != nullptr && end->status;
  const MutexLock lock(mutex_);
  auto known = jobs_.find(job.uid);
  if (known == jobs_.end()) {
    const auto [space, is_new] = namespaces_.try_emplace(job.name_space);
    if (is_new)
      for (const char* word : api::kStateWords) space->second.by_state[word] = 0;
    ++space->second.jobs;
    const Known fresh{.name_space = space, .state = space->second.by_state.end(), .view = nullptr};
    known = jobs_.emplace(job.uid, fresh).first;
  }
  Known& entry = known->second;
  auto& by_state = entry.name_space->second.by_state;
  if (entry.state != by_state.end()) --entry.state->second;
  entry.state = by_state.try_emplace(state).first;
  ++entry.state->second;
  const bool was_finished = std::exchange(entry.finished, finished);
  if (!finished) {
    entry.view = view_of_job(job, status);
    return;
  }
  if (was_finished) return;
  entry.view = nullptr;
  const api::Time ended = status.completion_time.value_or(end->last_transition);
  if (now - ended >= kShowsEnds) return;
  entry.view = view_of_job(job, status);
  shown_ends_.emplace(ended, job.uid);
  hide_old_ends(now);
}

std::shared_ptr<const JobView> JobStates::view_of_job(const Job& job,
                                                      const api::JobStatus& status) {
  auto view = std::make_shared<JobView>(view_of(job.name_space, job.name, job.created, status));
  if (job.active_deadline_seconds && status.start_time && view->end_reason.empty())
    view->deadline = plan::later_by(*status.start_time, *job.active_deadline_seconds);
  return view;
}

void JobStates::hide_old_ends(api::Time now) {
  while (!shown_ends_.empty() &&
         (shown_ends_.size() > kMostEnds || now - shown_ends_.begin()->first >= kShowsEnds)) {
    const auto job = jobs_.find(shown_ends_.begin()->second);
    if (job != jobs_.end() && job->second.finished) job->second.view = nullptr;
    shown_ends_.erase(shown_ends_.begin());
  }
}

void JobStates::forget(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job_uid);
  if (known == jobs_.end()) return;
  const Known& entry = known->second;
  --entry.state->second;
  if (--entry.name_space->second.jobs == 0) namespaces_.erase(entry.name_space);
  jobs_.erase(known);
}

bool JobStates::is_finished(const std::string& job_uid) const {
  const MutexLock lock(mutex_);
  const auto known = jobs_.find(job_uid);
  return known != jobs_.end() && known->second.finished;
}

std::map<std::string, std::map<std::string, int>> JobStates::counts() const {
  const MutexLock lock(mutex_);
  std::map<std::string, std::map<std::string, int>> counts;
  for (const auto& [name, space] : namespaces_) counts[name] = space.by_state;
  return counts;
}

std::vector<std::shared_ptr<const JobView>> JobStates::views(api::Time now) {
  const MutexLock lock(mutex_);
  hide_old_ends(now);
  std::vector<std::shared_ptr<const JobView>> views;
  for (const auto& [uid, job] : jobs_)
    if (job.view) views.push_back(job.view);
  return views;
}

}  // namespace muster::kube
