#include "operator/kube/cluster/replica_observer.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "common/documents/json.h"
#include "common/net/host_port.h"
#include "operator/api/progress.h"
#include "operator/kube/pods/names.h"
#include "operator/kube/pods/observe.h"
#include "operator/plan/describe.h"

namespace muster::kube {

namespace {

using namespace std::chrono_literals;
using plan::ObservedReplica;

constexpr auto kAskAgainAboutNode = 5s;

std::string http_address(const std::string& ip) {
  return join_host_port(ip, std::to_string(kHttpPort));
}

// Adds a restart of the process within the container, which the kubelet does not see.
void take_restart(const ProgressPoller::Group::Restart& restart, const Pod& pod,
                  ObservedReplica& replica) {
  if (restart.attempt != replica.attempt || replica.deleting) return;
  const int restarts = restarts_of_container(pod) + restart.restarts;
  if (restarts <= replica.restarts) return;
  replica.restarts = restarts;
  replica.exit_code = restart.exit_code;
  replica.outage_seconds = restart.seconds;
}

ProgressPoller make_poller(const Environment& environment) {
  const auto on_news = [wake = environment.wake, now = environment.now](const std::string& key) {
    wake(key, now());
  };
  if (!environment.ask_progress) return {{}, on_news};
  return {{}, on_news, environment.ask_progress};
}

}  // namespace

ReplicaObserver::ReplicaObserver(const Client& client, const Environment& environment)
    : environment_(environment),
      lost_nodes_(client),
      node_leases_(client, environment.boot_time ? environment.boot_time : boot_time),
      troubles_(client),
      poller_(make_poller(environment)) {}

void ReplicaObserver::forget_pod(const std::string& uid) {
  const MutexLock lock(mutex_);
  given_up_.erase(uid);
}

std::vector<ObservedReplica> ReplicaObserver::observe(const api::TrainingJob& job,
                                                      const std::vector<Pod>& pods) {
  follow_progress(job, pods);
  const View view = view_of(job, pods);
  std::vector<ObservedReplica> replicas;
  for (const Pod& pod : pods) {
    const auto replica = kube::observe(pod);
    if (replica) replicas.push_back(look_at(job, view, pod, *replica));
  }
  explain_pending(job, pods, replicas);
  return replicas;
}

ReplicaObserver::View ReplicaObserver::view_of(const api::TrainingJob& job,
                                               const std::vector<Pod>& pods) const {
  View view;
  if (job.training.is_null()) return view;
  view.group = poller_.group(key_of(job));
  if (!view.group.silent) return view;
  for (const Pod& pod : pods) {
    const auto replica = kube::observe(pod);
    // A replica that was never ready may not serve /progress yet: its silence means nothing.
    if (replica && plan::leads(job, replica->role, replica->index) && is_current(pod) &&
        was_ready(pod)) {
      view.silent_node = pod.node;
    }
  }
  return view;
}

ObservedReplica ReplicaObserver::look_at(const api::TrainingJob& job, const View& view,
                                         const Pod& pod, const ObservedReplica& by_its_status) {
  if (!is_live(by_its_status)) return by_its_status;
  if (is_given_up(job, view, pod, by_its_status) || is_lost(pod)) {
    return *kube::observe(pod, /*node_lost=*/true);
  }
  ObservedReplica replica = by_its_status;
  const auto restart = view.group.restarts.find(plan::describe(job, replica.role, replica.index));
  if (restart != view.group.restarts.end()) take_restart(restart->second, pod, replica);
  return replica;
}

bool ReplicaObserver::is_lost(const Pod& pod) {
  if (!is_suspect(pod)) return false;
  if (lost_nodes_.has_lost(pod, environment_.now())) return true;
  environment_.wake(pod.meta.name_space + "/" + pod.meta.label(kJobLabel),
                    environment_.now() + kAskAgainAboutNode);
  return false;
}

// Whether a pod is considered lost: its node has not renewed its Lease for a while, and rank 0
// misses the pod or is itself silent on that node. The pod stays given up until its node renews the
// Lease again. Two live pods of one index do no harm if they run muster-trainer (decisions 1 and 10
// of docs/decisions.md).
bool ReplicaObserver::is_given_up(const api::TrainingJob& job, const View& view, const Pod& pod,
                                  const ObservedReplica& replica) {
  if (pod.node.empty() || job.training.is_null()) return false;
  const bool missed = view.group.missing.contains(plan::describe(job, replica.role, replica.index));
  {
    const MutexLock lock(mutex_);
    const bool is_doubted = missed || pod.node == view.silent_node;
    if (!is_doubted && !given_up_.contains(pod.meta.uid)) return false;
  }
  std::chrono::milliseconds again{};
  const bool lost = node_leases_.is_silent(pod.node, again);
  environment_.wake(key_of(job), environment_.now() + again);
  const MutexLock lock(mutex_);
  if (lost) {
    given_up_.insert(pod.meta.uid);
  } else {
    given_up_.erase(pod.meta.uid);
  }
  return lost;
}

// If no pod's status says why a pod is pending, asks for the events of the first pods.
void ReplicaObserver::explain_pending(const api::TrainingJob& job, const std::vector<Pod>& pods,
                                      std::vector<ObservedReplica>& replicas) {
  constexpr size_t kMost = 8;
  std::map<std::tuple<api::Role, int, int>, ObservedReplica*> pending;
  for (ObservedReplica& replica : replicas) {
    if (replica.phase != plan::Phase::pending || replica.deleting) continue;
    if (!replica.reason.empty()) return;
    pending[{replica.role, replica.index, replica.attempt}] = &replica;
    if (pending.size() > kMost) pending.erase(std::prev(pending.end()));
  }
  for (const auto& [place, replica] : pending) {
    const std::string& uid = replica->uid;
    const auto pod =
        std::ranges::find_if(pods, [&uid](const Pod& one) { return one.meta.uid == uid; });
    api::Time again{};
    PodTroubles::Trouble trouble = troubles_.look(*pod, environment_.now(), again);
    environment_.wake(key_of(job), again);
    replica->reason = std::move(trouble.reason);
    replica->explanation = std::move(trouble.words);
  }
}

void ReplicaObserver::follow_progress(const api::TrainingJob& job, const std::vector<Pod>& pods) {
  for (const Pod& pod : pods) {
    const auto replica = kube::observe(pod);
    if (!replica || !plan::leads(job, replica->role, replica->index) || !is_current(pod)) continue;
    const bool speaks =
        !pod.ip.empty() && replica->phase == plan::Phase::running && !replica->deleting;
    if (speaks && job.training.is_null()) break;  // the user's own image: it has no /progress
    if (speaks) return poller_.watch(key_of(job), pod.meta.uid, http_address(pod.ip));
    if (const Json last = final_progress(pod); !last.is_null()) {
      Json progress = progress_of(job);
      if (progress.is_null()) progress = Json::object();
      if (const Json known = api::progress_of(last); known.is_object()) progress.update(known);
      return poller_.conclude(key_of(job), api::progress_of(progress),
                              plan::ProcessLedger::of(last));
    }
  }
  poller_.rest(key_of(job));
}

std::optional<plan::ProcessLedger> ReplicaObserver::ledger_of(const api::TrainingJob& job) const {
  return poller_.ledger(key_of(job));
}

// A replica that has not taken its first step yet does not know how far the job has come: until
// then the status keeps the progress that it had.
Json ReplicaObserver::progress_of(const api::TrainingJob& job) const {
  Json progress = poller_.progress(key_of(job));
  const bool begins = api::steps_taken(progress) == 0 && api::steps_taken(job.status.progress) > 0;
  if (!progress.is_null() && !begins) return progress;
  Json kept = job.status.progress;
  if (!kept.is_object()) return kept;
  kept.erase("stalled");  // the stalled process may be gone
  if (const Json& now = member(progress, "stalled"); !now.is_null()) kept["stalled"] = now;
  return kept;
}

}  // namespace muster::kube
