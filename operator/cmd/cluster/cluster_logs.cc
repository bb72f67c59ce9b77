#include "operator/cmd/cluster/cluster_logs.h"

#include <algorithm>

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

void sort_by_time(std::vector<ReplicaLine>& lines) {
  std::ranges::stable_sort(lines, {}, [](const ReplicaLine& line) { return line.line.time; });
}

LogFollowers::~LogFollowers() {
  keep({});
}

void LogFollowers::see(const std::string& replica, const kube::Pod& pod, bool ended) {
  const auto [at, is_new] = followers_.try_emplace(pod.meta.uid);
  Follower& follower = at->second;
  follower.ended = ended;
  if (!is_new) return;
  {
    const MutexLock lock(mutex_);
    ++behind_;
  }
  follower.thread = std::jthread([=, this, &follower] { run(replica, pod, follower); });
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
    lines_.push_back({replica, line});
  };
  int tail = tail_;
  const auto attempt = [&](bool follow) {
    try {
      if (follow)
        log.follow(tail, on_line, follower.gone.get_token());
      else
        log.read(tail, on_line);
      tail = -1;
    } catch (const Unavailable&) {
    } catch (const Invalid&) {  // the container never started
    }
  };
  attempt(/*follow=*/false);
  {
    const MutexLock lock(mutex_);
    --behind_;
    caught_up_.notify_all();
  }
  for (;;) {
    // Read first: everything written before the end is then read below.
    const bool last = follower.ended;
    attempt(/*follow=*/!last);
    if (last) return;
    pause_for(pause_, follower.gone.get_token());
  }
}

std::vector<ReplicaLine> LogFollowers::take(std::chrono::milliseconds patience) {
  MutexLock lock(mutex_);
  caught_up_.wait_for(lock, patience, [&]() MUSTER_REQUIRES(mutex_) { return behind_ == 0; });
  std::vector<ReplicaLine> lines = std::exchange(lines_, {});
  sort_by_time(lines);
  return lines;
}

}  // namespace muster::cmd
