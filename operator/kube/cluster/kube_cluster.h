#pragma once

#include <map>
#include <set>
#include <string>

#include "common/threads/mutex.h"
#include "operator/cluster/cluster.h"
#include "operator/kube/api/client.h"
#include "operator/kube/cache/store.h"
#include "operator/kube/cluster/belongings.h"
#include "operator/kube/cluster/environment.h"
#include "operator/kube/cluster/job_pods.h"
#include "operator/kube/cluster/job_states.h"
#include "operator/kube/cluster/name_conflicts.h"
#include "operator/kube/cluster/replica_observer.h"
#include "operator/kube/cluster/report_pace.h"
#include "operator/kube/http/leader_transport.h"

namespace muster::kube {

// A Cluster over the Kubernetes API, for all jobs in view. A key is "<namespace>/<name>".
//
// It reads mirrors (store.h) that Reflectors fill, completed by its own writes, and writes through
// Client: several pods of a job at a time, everything else one call after the other. Several
// threads may call it, each for another job. Its writes are safe when they come late: names are
// computed from the job, creations carry the owner, deletions carry UID and version, and a status
// carries its version.
//
// Wakes a job when the view has changed by more than the cluster's own writes. An own write wakes a
// job only if it leaves a pod that must be released after its job has gone.
class KubeCluster final : public cluster::Cluster {
 public:
  struct Settings {
    PodSettings pods;
    Json http_peers;  // who may ask replicas for /metrics (network_policy.h); null: no policies
    double reports_per_second = 20;  // writes of a status that no action depends on
    size_t pods_at_a_time = 16;      // a job's pods that are written at the same time
  };
  KubeCluster(Transport& transport, Settings settings, Environment environment);

  // Reflectors fill these stores: TrainingJobs, and pods and services with the label
  // muster.dev/job.
  Store<WholeObject>& jobs() { return jobs_; }
  Store<Pod>& pods() { return pods_; }
  Store<Service>& services() { return services_; }
  // Returns the keys of the jobs in view, and of jobs that have gone and left pods behind.
  std::set<std::string> keys() const;
  bool is_finished(const std::string& key) const;
  JobStates& job_states() { return states_; }
  // Runs until `stop`: see ProgressPoller::run.
  void poll_progress(const std::stop_token& stop) { observer_.poll_progress(stop); }

  api::Time now() const override { return environment_.now(); }
  // Returns nothing for a job that has gone, and releases the pods that the job left behind.
  std::optional<api::TrainingJob> get(const std::string& key) override;
  plan::Observed observe(const api::TrainingJob& job) override;
  bool publish_status(const api::TrainingJob& job, const api::JobStatus& status) override;
  void create(const api::TrainingJob& job, std::span<const plan::CreateReplica> replicas) override;
  void remove(const api::TrainingJob& job, std::span<const plan::RemoveReplica> replicas) override;
  void emit(const api::TrainingJob& job, const plan::Event& event) override;
  void remove_job(const api::TrainingJob& job) override;

 private:
  void job_changed(const WholeObject* before, const WholeObject* after);
  void pod_changed(const Pod* before, const Pod* after);
  bool is_orphan(const Pod& pod);
  void service_changed(const Service* before, const Service* after);

  void begin_pass(const std::string& key, const std::string& job_uid);
  void forget(const std::string& job_uid, const std::string& key);
  void check_acceptance(const api::TrainingJob& job, plan::Observed& observed);
  static void tell_quota_apart(plan::Observed& observed);
  void hand_on_request(const api::TrainingJob& job, const std::vector<Pod>& pods);
  void keep_belongings(const api::TrainingJob& job, plan::Observed& observed);
  void write_status(const api::TrainingJob& job, const api::JobStatus& status);
  void note(const ObjectMeta& job, std::optional<int64_t> deadline_seconds,
            const api::JobStatus& status);
  void count(const api::TrainingJob& job, const api::JobStatus& status);
  bool is_wanted(const api::TrainingJob& job) const;

  const Environment environment_;
  LeaderTransport transport_;
  const Client client_;
  Store<WholeObject> jobs_;
  Store<Pod> pods_;
  Store<Service> services_;
  JobStates states_;
  NameConflicts conflicts_;
  Belongings belongings_;
  JobPods job_pods_;
  ReplicaObserver observer_;
  ReportPace starts_, reports_;

  Mutex mutex_;
  // Maps the key of a job to its UID in the last pass.
  std::map<std::string, std::string> uids_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster::kube
