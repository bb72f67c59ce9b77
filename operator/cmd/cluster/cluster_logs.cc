#include "operator/cmd/cluster/cluster_logs.h"

#include "common/error.h"
#include "common/threads/pause.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/describe.h"

namespace muster::cmd {

std::string replica_of(const api::TrainingJob& job, const kube::Pod& pod) {
  const std::optional<plan::ObservedReplica> replica = kube::observe(pod);
  return replica ? plan::describe(job, replica->role, replica->index) : "";
}

bool has_log(const kube::Pod& pod) {
  for (const kube::ContainerStatus& status : pod.container_statuses) {
    if (status.name != pod.meta.label(kube::kContainerLabel)) continue;
    return status.state != kube::ContainerStatus::State::waiting || status.restarts > 0;
  }
  return false;
}

LogFollowers::~LogFollowers() {
  keep({});
}

void LogFollowers::see(const std::string& replica, const kube::Pod& pod, bool ended) {
  const auto [at, is_new] = followers_.try_emplace(pod.meta.uid);
  Follower& follower = at->second;
  follower.ended = ended;
  if (is_new) follower.thread = std::jthread([=, this, &follower] { run(replica, pod, follower); });
}

void LogFollowers::keep(const std::set<std::string>& uids) {
  for (auto& [uid, follower] : followers_) {
    if (uids.contains(uid)) continue;
    follower.ended = true;
    follower.gone.request_stop();
  }
}

void LogFollowers::finish() {
  for (auto& [uid, follower] : followers_) follower.ended = true;
  for (auto& [uid, follower] : followers_) {
    if (follower.thread.joinable()) follower.thread.join();
  }
}

void LogFollowers::run(const std::string& replica, const kube::Pod& pod, Follower& follower) {
  PodLog log(transport_, pod);
  const PodLog::OnLine on_line = [&](const PodLogLine& line) {
    const MutexLock lock(mutex_);
    on_line_(replica, line);
  };
  for (int tail = tail_;; tail = -1) {
    const bool last = follower.ended;  // what was written before that was seen is read after
    try {
      if (last) return log.read(tail, on_line);
      log.follow(tail, on_line, follower.gone.get_token());
    } catch (const Unavailable&) {
    } catch (const Invalid&) {  // of a container that never started
    }
    if (last) return;
    pause_for(pause_, follower.gone.get_token());
  }
}

}  // namespace muster::cmd
