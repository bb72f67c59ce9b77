#include "operator/kube/cluster/job_states.h"

#include <utility>

#include "operator/api/overview.h"

namespace muster::kube {

void JobStates::note(const std::string& job_uid, const api::JobStatus& status) {
  State state = {api::state_word(status), status.is_true("Finished")};
  const MutexLock lock(mutex_);
  ++counts_[state.word];
  const auto [known, is_new] = states_.try_emplace(job_uid, state);
  if (!is_new) --counts_[std::exchange(known->second, std::move(state)).word];
}

void JobStates::forget(const std::string& job_uid) {
  const MutexLock lock(mutex_);
  const auto known = states_.find(job_uid);
  if (known == states_.end()) return;
  --counts_[known->second.word];
  states_.erase(known);
}

bool JobStates::is_finished(const std::string& job_uid) const {
  const MutexLock lock(mutex_);
  const auto known = states_.find(job_uid);
  return known != states_.end() && known->second.finished;
}

std::map<std::string, int> JobStates::counts() {
  const MutexLock lock(mutex_);
  return counts_;
}

}  // namespace muster::kube
