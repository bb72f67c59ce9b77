#pragma once

#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "common/threads/mutex.h"
#include "operator/kube/cluster/environment.h"
#include "operator/kube/cluster/lost_nodes.h"
#include "operator/kube/cluster/node_leases.h"
#include "operator/kube/cluster/pod_troubles.h"
#include "operator/kube/cluster/progress_poller.h"
#include "operator/plan/values.h"

namespace muster::kube {

// Finds the state of a job's replicas from the status of its pods. If the status does not say
// enough, the observer asks the leading replica, nodes and their Leases, and the events of pods.
// Thread-safe.
class ReplicaObserver {
 public:
  // Uses `environment` to wake a job that should be looked at again. Both must outlive the
  // observer.
  ReplicaObserver(const Client& client, const Environment& environment);

  std::vector<plan::ObservedReplica> observe(const api::TrainingJob& job,
                                             const std::vector<Pod>& pods);
  // Returns what the leading replica says of its time, if it does.
  std::optional<plan::ProcessLedger> ledger_of(const api::TrainingJob& job) const;
  // Returns what status.progress should be now.
  Json progress_of(const api::TrainingJob& job) const;
  // Runs until `stop`: see ProgressPoller::run.
  void poll_progress(const std::stop_token& stop) { poller_.run(stop); }
  void forget_job(const std::string& key) { poller_.forget(key); }
  void forget_pod(const std::string& uid);

 private:
  // The state of a job with `training` as its leading replica reports it; empty for other jobs.
  struct View {
    ProgressPoller::Group group;
    std::string silent_node;  // node of the leading replica, if it does not answer
  };
  View view_of(const api::TrainingJob& job, const std::vector<Pod>& pods) const;
  plan::ObservedReplica look_at(const api::TrainingJob& job, const View& view, const Pod& pod,
                                const plan::ObservedReplica& by_its_status);
  bool is_lost(const Pod& pod);
  bool is_given_up(const api::TrainingJob& job, const View& view, const Pod& pod,
                   const plan::ObservedReplica& replica);
  void explain_pending(const api::TrainingJob& job, const std::vector<Pod>& pods,
                       std::vector<plan::ObservedReplica>& replicas);
  void follow_progress(const api::TrainingJob& job, const std::vector<Pod>& pods);

  const Environment& environment_;
  LostNodes lost_nodes_;
  NodeLeases node_leases_;
  PodTroubles troubles_;
  ProgressPoller poller_;
  Mutex mutex_;
  std::set<std::string> given_up_ MUSTER_GUARDED_BY(mutex_);  // UIDs of pods, with their nodes
};

}  // namespace muster::kube
